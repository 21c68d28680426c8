//! Modules.

use super::{Committed, answers};
use crate::model::UnixMs;
use crate::ports::Missing;
use crate::ports::modules::ModuleHash;
use crate::ports::store::modules::{
    ActivateModule, Activation, DeactivateModule, ListModules, MODULE_VERSIONS_MAX, MODULES_MAX, ModuleCode,
    ModuleIsActive, ModuleList, PushModule, PushedModule, RemoveModule, TooManyModules,
};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::BTreeMap;

answers! {
    ListModules => list;
    ModuleCode => code;
    PushModule => push;
    ActivateModule => activate;
    DeactivateModule => deactivate;
    RemoveModule => remove;
}

/// Modules by their names.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    modules: BTreeMap<Box<str>, Module>,
}

#[derive(Clone, Debug, Default)]
struct Module {
    versions: BTreeMap<ModuleHash, (UnixMs, Bytes)>,
    activation: Option<Activation>,
}

impl Module {
    fn is_used(&self, hash: &ModuleHash) -> bool {
        self.activation.as_ref().is_some_and(|activation| {
            activation.version.hash == *hash
                || activation.base.as_ref().is_some_and(|base| base.hash == *hash)
        })
    }
}

fn list(store: &Committed, _: &ListModules) -> ModuleList {
    let mut list = ModuleList::default();
    for (name, module) in &store.own.modules.modules {
        let mut versions: Vec<_> = module.versions.iter().collect();
        versions.sort_by_key(|(hash, (pushed, _))| Reverse((*pushed, **hash)));
        list.versions.extend(versions.into_iter().map(|(hash, (pushed, code))| PushedModule {
            name: name.clone(),
            hash: *hash,
            code_bytes: code.len() as u64,
            pushed: *pushed,
        }));
        list.activated.extend(module.activation.clone().map(|activation| (name.clone(), activation)));
    }
    list
}

fn code(store: &Committed, asked: &ModuleCode) -> Option<Bytes> {
    let module = store.own.modules.modules.get(&asked.name)?;
    module.versions.get(&asked.hash).map(|(_, code)| code.clone())
}

fn push(store: &mut Committed, asked: &PushModule) -> Result<(), TooManyModules> {
    let modules = &mut store.own.modules.modules;
    if !modules.contains_key(&asked.name) && modules.len() >= MODULES_MAX as usize {
        return Err(TooManyModules);
    }
    let module = modules.entry(asked.name.clone()).or_default();
    module.versions.entry(asked.hash).or_insert_with(|| (asked.now, asked.code.clone()));
    while module.versions.len() > MODULE_VERSIONS_MAX as usize {
        let free = module.versions.iter().filter(|(hash, _)| !module.is_used(hash) && **hash != asked.hash);
        let Some(oldest) = free.min_by_key(|(hash, (pushed, _))| (*pushed, **hash)).map(|(hash, _)| *hash)
        else {
            break;
        };
        module.versions.remove(&oldest);
    }
    Ok(())
}

fn activate(store: &mut Committed, asked: &ActivateModule) -> Result<(), Missing> {
    let module = store.own.modules.modules.get_mut(&asked.name).ok_or(Missing)?;
    let mut versions =
        [Some(&asked.activation.version), asked.activation.base.as_ref()].into_iter().flatten();
    if !versions.all(|version| module.versions.contains_key(&version.hash)) {
        return Err(Missing);
    }
    module.activation = Some(asked.activation.clone());
    Ok(())
}

fn deactivate(store: &mut Committed, asked: &DeactivateModule) {
    if let Some(module) = store.own.modules.modules.get_mut(&asked.name) {
        module.activation = None;
    }
}

fn remove(store: &mut Committed, asked: &RemoveModule) -> Result<(), ModuleIsActive> {
    let modules = &mut store.own.modules.modules;
    if modules.get(&asked.name).is_some_and(|module| module.activation.is_some()) {
        return Err(ModuleIsActive);
    }
    modules.remove(&asked.name);
    Ok(())
}

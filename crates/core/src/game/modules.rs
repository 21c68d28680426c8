//! The modules that decide matches: which of them is there, and what they may use in one turn of a shard.

use crate::model::{MatchId, Mono, bucket};
use crate::ports::modules::{
    ActiveModule, Compiled, HookSet, ModuleHash, ModuleHook, ModuleScope, ModuleVersion, TURN_FUEL,
};
use std::sync::Arc;

/// The active modules that decide matches.
#[derive(Debug, Default)]
pub(super) struct MatchModules {
    list: Vec<MatchModule>,
}

#[derive(Debug)]
struct MatchModule {
    name: Arc<str>,
    scope: ModuleScope,
    is_shadow: bool,
    version: Option<Version>,
    base: Option<Version>,
}

/// A version of a module, for a match.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: Arc<str>,
    pub(super) hash: ModuleHash,
    pub(super) config: Arc<str>,
    pub(super) compiled: Arc<dyn Compiled>,
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        (&self.name, self.hash, &self.config) == (&other.name, other.hash, &other.config)
    }
}

impl Version {
    /// As operators name it.
    pub(super) fn shown(&self) -> String {
        let hash: String = self.hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}@{hash}", self.name)
    }
}

impl MatchModules {
    /// Those of all active modules that decide matches.
    pub(super) fn of(modules: &[ActiveModule]) -> MatchModules {
        let list = modules.iter().filter(|module| module.hooks().has_any(HookSet::MATCH)).map(|module| {
            let version = |of: &ModuleVersion| {
                of.hooks.has(ModuleHook::MatchTick).then(|| Version {
                    name: module.name.clone(),
                    hash: of.hash,
                    config: of.config.clone(),
                    compiled: of.compiled.clone(),
                })
            };
            MatchModule {
                name: module.name.clone(),
                scope: module.scope.clone(),
                is_shadow: module.is_shadow,
                version: version(&module.version),
                base: module.base.as_ref().and_then(version),
            }
        });
        MatchModules { list: list.collect() }
    }

    /// Whether there is a module of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|module| &*module.name == name)
    }

    /// The version that decides a match: the activated one for those that it is activated for, else the one before it.
    pub(super) fn choose(&self, name: &str, domain: &str, id: MatchId) -> Option<&Version> {
        let module = self.list.iter().find(|module| &*module.name == name)?;
        let ModuleScope { domain: scope, percent } = &module.scope;
        let is_meant = scope.as_deref().is_none_or(|scope| scope == domain)
            && bucket(&id.to_string()) % 100 < u16::from(*percent);
        match is_meant && !module.is_shadow {
            true => module.version.as_ref(),
            false => module.base.as_ref(),
        }
    }
}

/// The fuel of one turn. All that happens in one turn happens at one time.
#[derive(Debug, Default)]
pub(super) struct TurnFuel {
    at: Mono,
    used: u64,
}

impl TurnFuel {
    /// Begins a turn, if it is not the one that has begun.
    pub(super) fn begin(&mut self, now: Mono) {
        if self.at != now {
            *self = TurnFuel { at: now, used: 0 };
        }
    }

    /// Whether so much more may be used. Nothing that is less than a turn's is refused a turn of its own.
    pub(super) fn has(&self, fuel: u64) -> bool {
        self.used == 0 || self.used.saturating_add(fuel) <= TURN_FUEL
    }

    pub(super) fn spend(&mut self, fuel: u64) {
        self.used = self.used.saturating_add(fuel);
    }
}

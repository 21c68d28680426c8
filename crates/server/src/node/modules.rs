//! The modules of a node: compiled off the shards, and given to each shard between two of its turns.

use super::{Node, lock};
use crate::cell::Record;
use crate::channels::inbox::Control;
use crate::channels::join::AllDone;
use carillon_core::ports::modules::{
    ActiveModule, Call, Compiled, Done, Failed, Failure, HookSet, Instance, ModuleHash, ModuleHook,
    ModuleScope, ModuleVersion, NotAModule, Notes, Runtime,
};
use carillon_core::ports::store::modules::{Activation, Configured, ListModules, ModuleCode};
use carillon_core::ports::{Fault, Question, Reply};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;

/// How long the store may take to say what is activated.
const PATIENCE: Duration = Duration::from_secs(30);

/// What compiles modules, and what it compiled.
pub(super) struct Modules {
    runtime: Arc<dyn Runtime>,
    /// The node's name in its cell, if it is in one.
    own_name: Option<Box<str>>,
    /// Those that are activated, by the hash of their code. Held while they are read and given to the shards, so that all shards
    /// hear of changes in the same order.
    compiled: Mutex<Versions>,
    /// Somebody waits to read them anew, and will see what was activated until then.
    is_awaited: AtomicBool,
    /// One of them may have something to say about pushes, on this node or on another.
    may_render: AtomicBool,
}

type Versions = HashMap<ModuleHash, Arc<dyn Compiled>>;

/// A module that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The hash of its code.
    pub hash: ModuleHash,
    /// The hooks that it has.
    pub hooks: HookSet,
}

/// Why modules are not as they are activated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ModulesError {
    /// This binary runs none.
    #[error("this binary was built without modules: build it with the feature `modules`")]
    NotBuilt,
    /// The store did not say what is activated.
    #[error("the store did not say which modules are activated: {0}")]
    Store(#[from] Fault),
    /// A version cannot be run; the other modules are as they are activated.
    #[error("the module `{name}` cannot be run: {why}")]
    Unfit {
        /// Its name.
        name: Box<str>,
        /// What is wrong.
        why: String,
    },
}

impl Modules {
    pub(super) fn new(runtime: Arc<dyn Runtime>, own_name: Option<Box<str>>) -> Modules {
        Modules {
            runtime,
            own_name,
            compiled: Mutex::default(),
            is_awaited: AtomicBool::new(false),
            may_render: AtomicBool::new(false),
        }
    }
}

impl Node {
    /// Whether this node can run modules.
    pub fn has_modules(&self) -> bool {
        self.inner.modules.is_some()
    }

    /// Whether a module may have something to say about what a push tells ([`RenderPush`](carillon_core::command::Command::RenderPush)).
    pub fn may_render_pushes(&self) -> bool {
        self.inner.modules.as_ref().is_some_and(|modules| modules.may_render.load(Ordering::Relaxed))
    }

    /// Checks and compiles a module. It blocks, within the compiler's bounds.
    ///
    /// # Errors
    /// If it is not a module.
    pub fn check_module(&self, code: &[u8]) -> Result<Pushed, NotAModule> {
        let Some(modules) = &self.inner.modules else {
            return Err(NotAModule::Invalid(ModulesError::NotBuilt.to_string()));
        };
        let compiled = modules.runtime.compile(code)?;
        Ok(Pushed { hash: compiled.hash(), hooks: compiled.hooks() })
    }

    /// Whether this node could carry out an activation: its versions are compiled and started, with what they are told. It blocks, within the
    /// compiler's bounds.
    ///
    /// # Errors
    /// If it could not.
    pub fn check_activation(&self, name: &str, activation: &Activation) -> Result<(), ModulesError> {
        let modules = self.inner.modules.as_ref().ok_or(ModulesError::NotBuilt)?;
        let mut compiled = lock(&modules.compiled);
        for of in [Some(&activation.version), activation.base.as_ref()].into_iter().flatten() {
            self.version(modules, &mut compiled, name, of)?;
        }
        Ok(())
    }

    /// Reads from the store what is activated, and gives it to every shard. `reply` is called when all shards of this node have it; other nodes
    /// of the cell do the same as soon as they hear of it.
    pub fn reload_modules(&self, reply: Reply<Result<(), ModulesError>>) {
        for to in self.directory().other_nodes() {
            self.post_far(*to, &Record::ModulesChanged);
        }
        self.load_modules(reply);
    }

    /// Something of another node was lost, and it may have been that modules changed.
    pub(crate) fn modules_may_have_changed(&self) {
        let Some(modules) = &self.inner.modules else { return };
        if !modules.is_awaited.swap(true, Ordering::SeqCst) {
            self.load_modules(Box::new(|_| {}));
        }
    }

    /// The same on this node, on a thread of its own.
    pub(crate) fn load_modules(&self, reply: Reply<Result<(), ModulesError>>) {
        let node = self.clone();
        let load = move || {
            let loaded = node.load_modules_now();
            // A node that ends needs none.
            if let Err(error) = &loaded
                && !matches!(error, ModulesError::Store(Fault::Closed))
            {
                tracing::error!(%error, "modules are not as they are activated");
            }
            reply(loaded);
        };
        if let Err(error) = Builder::new().name("modules".into()).spawn(load) {
            tracing::error!(%error, "no thread to load modules");
        }
    }

    /// The same, at once: when it returns, the shards will not take another input before they have the modules, or have them.
    pub(crate) fn load_modules_now(&self) -> Result<(), ModulesError> {
        let modules = self.inner.modules.as_ref().ok_or(ModulesError::NotBuilt)?;
        let mut compiled = lock(&modules.compiled);
        modules.is_awaited.store(false, Ordering::SeqCst);
        let list = self.ask_and_wait(ListModules)?;
        let own = modules.own_name.as_deref();
        // What others of them have is not known here.
        let mut may_render = list.activated.iter().any(|(_, of)| !is_here(of, own));
        let activated: Vec<_> =
            list.activated.into_iter().filter_map(|(name, of)| Some((name, here(of, own)?))).collect();
        compiled.retain(|hash, _| activated.iter().any(|(_, of)| uses(of, hash)));
        let (mut of_shards, mut unfit) = (self.shard_ids().map(|_| Vec::new()).collect::<Vec<_>>(), None);
        for (name, activation) in &activated {
            for active in &mut of_shards {
                active.push(self.active(modules, &mut compiled, name, activation, &mut unfit));
            }
        }
        let renders = |active: &ActiveModule| active.hooks().has(ModuleHook::PushRender);
        may_render |= of_shards.iter().flatten().any(renders);
        modules.may_render.store(may_render, Ordering::Relaxed);
        let (sender, taken) = sync_channel::<()>(0);
        let done = AllDone::new(Box::new(move |()| drop(sender)));
        for (shard, active) in self.shard_ids().zip(of_shards) {
            self.control_of(shard, Control::Modules(active, Arc::clone(&done)));
        }
        drop(done);
        // Before the shards run they take it with their first input.
        if self.is_ready() {
            let _ = taken.recv_timeout(PATIENCE);
        }
        unfit.map_or(Ok(()), Err)
    }

    /// A module for one shard. A version that cannot be run fails whenever it is asked, and `unfit` says why.
    fn active(
        &self,
        modules: &Modules,
        compiled: &mut Versions,
        name: &str,
        activation: &Activation,
        unfit: &mut Option<ModulesError>,
    ) -> ActiveModule {
        let mut version = |of: &Configured| match self.version(modules, compiled, name, of) {
            Ok(version) => version,
            Err(error) => {
                let code = self.ask_and_wait(ModuleCode { name: name.into(), hash: of.hash }).ok().flatten();
                let hooks = code.map_or(HookSet::ALL, |code| named_in(&code));
                let version = unrunnable(of, hooks, &error);
                *unfit = Some(error);
                version
            }
        };
        ActiveModule {
            name: name.into(),
            scope: ModuleScope {
                domain: activation.domain.as_deref().map(Arc::from),
                percent: activation.percent,
            },
            is_shadow: activation.is_shadow,
            on_failure: activation.on_failure,
            since: activation.since,
            version: version(&activation.version),
            base: activation.base.as_ref().map(version),
        }
    }

    /// A version, compiled if it is not, with an instance that was started.
    fn version(
        &self,
        modules: &Modules,
        compiled: &mut Versions,
        name: &str,
        of: &Configured,
    ) -> Result<ModuleVersion, ModulesError> {
        let module = match compiled.get(&of.hash) {
            Some(module) => Arc::clone(module),
            None => self.compile(modules, name, of.hash)?,
        };
        compiled.insert(of.hash, Arc::clone(&module));
        let config = Arc::<str>::from(&*of.config);
        let instance = module.instance(&config).map_err(|failed| unfit(name, failed.detail))?;
        let hooks = module.hooks();
        Ok(ModuleVersion { hash: of.hash, config, hooks, instance, compiled: module })
    }

    fn compile(
        &self,
        modules: &Modules,
        name: &str,
        hash: ModuleHash,
    ) -> Result<Arc<dyn Compiled>, ModulesError> {
        let code = self.ask_and_wait(ModuleCode { name: name.into(), hash })?;
        let code = code.ok_or_else(|| unfit(name, "its code is gone"))?;
        modules.runtime.compile(&code).map_err(|error| match error {
            NotAModule::Invalid(why) => unfit(name, why),
            NotAModule::Busy => unfit(name, "the compiler is busy"),
        })
    }

    fn ask_and_wait<Q: Question>(&self, question: Q) -> Result<Q::Answer, Fault> {
        let (sender, answer) = sync_channel(1);
        self.ask(question, move |said| drop(sender.send(said)));
        answer.recv_timeout(PATIENCE).unwrap_or(Err(Fault::Busy))
    }
}

/// Whether an activation is for the node of this name.
fn is_here(activation: &Activation, own: Option<&str>) -> bool {
    activation.node.is_none() || activation.node.as_deref() == own
}

/// What an activation is on the node of this name: on others than the one that it is for, that of the version before, for everybody.
fn here(activation: Activation, own: Option<&str>) -> Option<Activation> {
    if is_here(&activation, own) {
        return Some(activation);
    }
    let Activation { base, on_failure, since, .. } = activation;
    Some(Activation {
        version: base?,
        base: None,
        node: None,
        domain: None,
        percent: 100,
        is_shadow: false,
        on_failure,
        since,
    })
}

/// The hooks whose names are those of functions that code exports, as far as that is seen without reading it: no others can be among its own.
fn named_in(code: &[u8]) -> HookSet {
    let is_exported = |hook: &ModuleHook| {
        let name = hook.name().as_bytes();
        // Its length, the name, and that it is a function.
        let export = [&[name.len() as u8][..], name, &[0]].concat();
        code.windows(export.len()).any(|part| part == export)
    };
    ModuleHook::ALL.into_iter().filter(is_exported).fold(HookSet::default(), HookSet::with)
}

fn uses(activation: &Activation, hash: &ModuleHash) -> bool {
    let base = activation.base.as_ref().is_some_and(|base| base.hash == *hash);
    base || activation.version.hash == *hash
}

fn unfit(name: &str, why: impl Into<String>) -> ModulesError {
    ModulesError::Unfit { name: name.into(), why: why.into() }
}

/// A version that cannot be run. It is asked about all that it may decide about, and fails.
fn unrunnable(of: &Configured, hooks: HookSet, why: &ModulesError) -> ModuleVersion {
    let unrunnable = Unrunnable { hash: of.hash, hooks, why: why.to_string().into() };
    let (instance, compiled) = (Box::new(unrunnable.clone()), Arc::new(unrunnable));
    ModuleVersion { hash: of.hash, config: Arc::from(&*of.config), hooks, instance, compiled }
}

/// In place of a module that could not be compiled, and of its instances.
#[derive(Clone, Debug)]
struct Unrunnable {
    hash: ModuleHash,
    hooks: HookSet,
    why: Box<str>,
}

impl Unrunnable {
    fn failed(&self) -> Failed {
        Failed { failure: Failure::Start, detail: self.why.clone() }
    }
}

impl Instance for Unrunnable {
    fn call(&mut self, call: Call) -> Done {
        Done { subject: call.subject, result: Err(self.failed()), fuel: 0, notes: Notes::default() }
    }

    fn renew(&mut self, _: u64) -> Result<u64, Failed> {
        Err(self.failed())
    }
}

impl Compiled for Unrunnable {
    fn hash(&self) -> ModuleHash {
        self.hash
    }

    fn hooks(&self) -> HookSet {
        self.hooks
    }

    fn instance(&self, _: &Arc<str>) -> Result<Box<dyn Instance>, Failed> {
        Err(self.failed())
    }

    fn match_instance(&self, _: &Arc<str>) -> Result<(Box<dyn Instance>, u64), Failed> {
        Err(self.failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::UnixMs;
    use carillon_core::ports::modules::OnFailure;

    fn canary(base: Option<u8>) -> Activation {
        let version = |hash: u8| Configured { hash: [hash; 32], config: "".into() };
        Activation {
            version: version(2),
            base: base.map(version),
            node: Some("a".into()),
            domain: Some("example.org".into()),
            percent: 5,
            is_shadow: true,
            on_failure: OnFailure::Closed,
            since: UnixMs(7),
        }
    }

    #[test]
    fn a_version_for_one_node_is_nothing_to_the_others_but_the_version_before() {
        assert_eq!(here(canary(Some(1)), Some("a")), Some(canary(Some(1))));
        let everywhere = Activation { node: None, ..canary(Some(1)) };
        for own in [None, Some("a"), Some("b")] {
            assert_eq!(here(everywhere.clone(), own), Some(everywhere.clone()));
        }
        for own in [None, Some("b")] {
            let before = here(canary(Some(1)), own).expect("the version before");
            assert!(before.is_for_all(), "{before:?}");
            assert_eq!((before.version.hash, before.base, before.since), ([1; 32], None, UnixMs(7)));
            assert_eq!(here(canary(None), own), None);
        }
    }

    #[test]
    fn what_cannot_be_run_is_asked_about_what_it_exports() {
        let export = |name: &str| [&[name.len() as u8][..], name.as_bytes(), &[0, 7]].concat();
        let code = [&b"opened closed"[..], &export("arrived"), &export("not_opened")].concat();
        assert_eq!(named_in(&code), HookSet::default().with(ModuleHook::Arrived));
        assert_eq!(named_in(b""), HookSet::default());
    }
}

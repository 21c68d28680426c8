//! The modules of a node: compiled off the shards, and given to each shard between two of its turns.

use super::{Node, lock};
use crate::cell::Record;
use crate::channels::inbox::Control;
use crate::channels::join::AllDone;
use carillon_core::ports::modules::{
    ActiveModule, Call, Compiled, Done, Failed, Failure, HookSet, Instance, ModuleHash, ModuleScope,
    ModuleVersion, NotAModule, Notes, Runtime,
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
    /// Those that are activated, by the hash of their code. Held while they are read and given to the shards, so that all shards
    /// hear of changes in the same order.
    compiled: Mutex<Versions>,
    /// Somebody waits to read them anew, and will see what was activated until then.
    is_awaited: AtomicBool,
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
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Modules {
        Modules { runtime, compiled: Mutex::default(), is_awaited: AtomicBool::new(false) }
    }
}

impl Node {
    /// Whether this node can run modules.
    pub fn has_modules(&self) -> bool {
        self.inner.modules.is_some()
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
        compiled.retain(|hash, _| list.activated.iter().any(|(_, of)| uses(of, hash)));
        let (mut of_shards, mut unfit) = (self.shard_ids().map(|_| Vec::new()).collect::<Vec<_>>(), None);
        for (name, activation) in &list.activated {
            for active in &mut of_shards {
                active.push(self.active(modules, &mut compiled, name, activation, &mut unfit));
            }
        }
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
                let version = unrunnable(of, &error);
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

fn uses(activation: &Activation, hash: &ModuleHash) -> bool {
    let base = activation.base.as_ref().is_some_and(|base| base.hash == *hash);
    base || activation.version.hash == *hash
}

fn unfit(name: &str, why: impl Into<String>) -> ModulesError {
    ModulesError::Unfit { name: name.into(), why: why.into() }
}

/// A version that cannot be run. It is asked about everything, because what it would decide about is not known, and fails.
fn unrunnable(of: &Configured, why: &ModulesError) -> ModuleVersion {
    let unrunnable = Unrunnable { hash: of.hash, why: why.to_string().into() };
    let (instance, compiled) = (Box::new(unrunnable.clone()), Arc::new(unrunnable));
    ModuleVersion { hash: of.hash, config: Arc::from(&*of.config), hooks: HookSet::ALL, instance, compiled }
}

/// In place of a module that could not be compiled, and of its instances.
#[derive(Clone, Debug)]
struct Unrunnable {
    hash: ModuleHash,
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
        HookSet::ALL
    }

    fn instance(&self, _: &Arc<str>) -> Result<Box<dyn Instance>, Failed> {
        Err(self.failed())
    }

    fn match_instance(&self, _: &Arc<str>) -> Result<(Box<dyn Instance>, u64), Failed> {
        Err(self.failed())
    }
}

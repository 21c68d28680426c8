//! The modules of a conversation: real ones, in the text format of WebAssembly.

use carillon_core::model::UnixMs;
use carillon_core::ports::modules::*;
use carillon_modules::{Bounds, WasmRuntime};
use std::path::Path;
use std::sync::Arc;

/// A module that is active, from which those of shards are made.
#[derive(Clone)]
pub(crate) struct Module {
    name: Arc<str>,
    version: Arc<dyn Compiled>,
    base: Option<Arc<dyn Compiled>>,
    scope: ModuleScope,
    is_shadow: bool,
    on_failure: OnFailure,
    config: Arc<str>,
    since: UnixMs,
}

/// The modules that are active.
#[derive(Default)]
pub(crate) struct Active {
    modules: Vec<Module>,
    /// How often that changed.
    changes: u64,
}

impl Active {
    /// `module NAME is …`, and `module NAME is not active`: what is active then.
    pub(crate) fn change(&mut self, name: &str, words: &[&str]) -> Result<Vec<Module>, String> {
        self.changes += 1;
        self.modules.retain(|module| *module.name != *name);
        match words {
            ["is", "not", "active"] => {}
            ["is", rest @ ..] => self.modules.push(module(name, rest, UnixMs(self.changes))?),
            _ => return Err("not understood".into()),
        }
        Ok(self.modules.clone())
    }
}

/// `module NAME is FILE.wat [before=FILE.wat] [closed] [shadow] [percent=N] [domain=D] [config=TEXT]`, with files of `features/modules/`.
fn module(name: &str, words: &[&str], since: UnixMs) -> Result<Module, String> {
    let (file, words) = words.split_first().ok_or("a module has a file")?;
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    let percent = value("percent=").map_or(Ok(100), str::parse).map_err(|_| "percent=N")?;
    Ok(Module {
        name: name.into(),
        version: compile(file)?,
        base: value("before=").map(compile).transpose()?,
        scope: ModuleScope { domain: value("domain=").map(Arc::from), percent },
        is_shadow: words.contains(&"shadow"),
        on_failure: if words.contains(&"closed") { OnFailure::Closed } else { OnFailure::Open },
        config: value("config=").unwrap_or_default().into(),
        since,
    })
}

fn compile(file: &str) -> Result<Arc<dyn Compiled>, String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/features/modules"));
    let code = wat::parse_file(folder.join(file)).map_err(|error| error.to_string())?;
    let runtime = WasmRuntime::without_clock(Bounds::default());
    runtime.compile(&code).map_err(|error| format!("{error:?}"))
}

/// The modules for one shard, in the order of their names.
pub(crate) fn of_shard(modules: &[Module]) -> Vec<ActiveModule> {
    let mut modules: Vec<_> = modules.iter().map(Module::of_shard).collect();
    modules.sort_by(|one, other| one.name.cmp(&other.name));
    modules
}

impl Module {
    fn of_shard(&self) -> ActiveModule {
        let version = |of: &Arc<dyn Compiled>| ModuleVersion {
            hash: of.hash(),
            config: self.config.clone(),
            hooks: of.hooks(),
            instance: of.instance(&self.config).expect("it was started before"),
            compiled: of.clone(),
        };
        ActiveModule {
            name: self.name.clone(),
            scope: self.scope.clone(),
            is_shadow: self.is_shadow,
            on_failure: self.on_failure,
            since: self.since,
            version: version(&self.version),
            base: self.base.as_ref().map(version),
        }
    }
}

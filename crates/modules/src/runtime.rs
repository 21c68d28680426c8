//! Compiles modules, off the shards.

use crate::bounds::Bounds;
use crate::instance::WasmInstance;
use crate::state::HostState;
use crate::{abi, check};
use carillon_core::ports::modules::{
    Compiled, Failed, HookSet, Instance, MATCH_MEMORY_BYTES, ModuleHash, ModuleHook, NotAModule, Runtime,
};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wasmtime::{Config, Engine, EngineWeak, InstancePre, Linker, Module, OperatorCost, OptLevel};

/// How often the engine's clock ticks, by which calls end that fuel did not end.
const TICK: Duration = Duration::from_millis(10);

/// Modules in WebAssembly. It takes no memory and no thread before the first module is compiled.
pub struct WasmRuntime {
    bounds: Bounds,
    /// Calls also end by a clock, if fuel does not end them.
    has_clock: bool,
    /// Made for the first module.
    parts: OnceLock<Result<Parts, String>>,
    compiler: Arc<Compiler>,
}

/// What modules are compiled and linked with.
#[derive(Clone)]
struct Parts {
    engine: Engine,
    linker: Arc<Linker<HostState>>,
}

impl fmt::Debug for WasmRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmRuntime").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

impl WasmRuntime {
    /// A runtime whose calls also end by a clock, if fuel does not end them.
    pub fn new(bounds: Bounds) -> WasmRuntime {
        WasmRuntime { bounds, has_clock: true, parts: OnceLock::new(), compiler: Arc::default() }
    }

    /// A runtime without a clock, whose calls are the same whenever they are made: for simulations.
    pub fn without_clock(bounds: Bounds) -> WasmRuntime {
        WasmRuntime { has_clock: false, ..WasmRuntime::new(bounds) }
    }

    fn parts(&self) -> Result<&Parts, NotAModule> {
        let parts = self.parts.get_or_init(|| {
            let parts = Parts::new(&self.bounds).map_err(|error| error.to_string())?;
            if self.has_clock {
                let engine = parts.engine.weak();
                let clock = std::thread::Builder::new().name("modules-clock".into());
                clock.spawn(move || tick(&engine)).map_err(|error| error.to_string())?;
            }
            Ok(parts)
        });
        let wrong = |why: &String| NotAModule::Invalid(format!("this machine cannot run modules: {why}"));
        parts.as_ref().map_err(wrong)
    }
}

impl Parts {
    fn new(bounds: &Bounds) -> wasmtime::Result<Parts> {
        let engine = Engine::new(&config(bounds))?;
        let mut linker = Linker::new(&engine);
        abi::add(&mut linker)?;
        Ok(Parts { engine, linker: Arc::new(linker) })
    }
}

/// The clock of an engine, until that is gone.
fn tick(engine: &EngineWeak) {
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        std::thread::sleep(TICK);
    }
}

fn config(bounds: &Bounds) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(costs())
        .epoch_interruption(true)
        .max_wasm_stack(bounds.stack_bytes)
        .cranelift_opt_level(OptLevel::Speed)
        // The same call has the same outcome on every machine.
        .cranelift_nan_canonicalization(true);
    config
}

/// An instruction costs one, and each byte that it copies; memory is mapped and cleared by the kernel.
fn costs() -> OperatorCost {
    let mut costs = OperatorCost::new();
    costs.variable.memory_grow_per_page = u8::MAX;
    costs
}

impl Runtime for WasmRuntime {
    fn compile(&self, code: &[u8]) -> Result<Arc<dyn Compiled>, NotAModule> {
        let hooks = check::check(code, &self.bounds).map_err(NotAModule::Invalid)?;
        let done = Compiler::begin(&self.compiler, self.bounds.compile_time).ok_or(NotAModule::Busy)?;
        let (parts, bounds, code) = (self.parts()?.clone(), self.bounds, code.to_vec());
        let (sender, receiver) = sync_channel(1);
        let compile = move || {
            let compiled = compile(&parts, bounds, hooks, &code);
            drop(done);
            // Whoever waited may have given up.
            drop(sender.send(compiled));
        };
        let started = std::thread::Builder::new().name("modules-compiler".into()).spawn(compile);
        started.map_err(|error| NotAModule::Invalid(format!("no thread to compile it: {error}")))?;
        match receiver.recv_timeout(self.bounds.compile_time) {
            Ok(compiled) => Ok(Arc::new(compiled.map_err(NotAModule::Invalid)?)),
            Err(_) => {
                let seconds = self.bounds.compile_time.as_secs();
                Err(NotAModule::Invalid(format!("compiling it takes longer than {seconds} seconds")))
            }
        }
    }
}

/// Compiles one module at a time.
#[derive(Default)]
struct Compiler {
    is_busy: Mutex<bool>,
    is_free: Condvar,
}

/// The compiler is free when this is dropped, whatever happened.
struct Done(Arc<Compiler>);

impl Compiler {
    /// Waits until it is free, for so long at most.
    fn begin(compiler: &Arc<Compiler>, patience: Duration) -> Option<Done> {
        let is_busy = compiler.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = compiler.is_free.wait_timeout_while(is_busy, patience, |is_busy| *is_busy);
        let (mut is_busy, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *is_busy = true;
        Some(Done(Arc::clone(compiler)))
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        *self.0.is_busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.is_free.notify_one();
    }
}

fn compile(
    Parts { engine, linker }: &Parts,
    bounds: Bounds,
    hooks: HookSet,
    code: &[u8],
) -> Result<WasmModule, String> {
    let module =
        Module::from_binary(engine, code).map_err(|error| format!("it does not compile: {error:#}"))?;
    let pre = linker.instantiate_pre(&module).map_err(|error| format!("{error:#}"))?;
    let start_cost = code.len() as u64;
    let compiled = WasmModule { hash: Sha256::digest(code).into(), hooks, pre, bounds, start_cost };
    // What cannot be started is refused now, and not where it is activated.
    let started = compiled.instance(&"".into()).map_err(|failed| String::from(failed.detail));
    drop(started?);
    if hooks.has(ModuleHook::MatchTick) {
        let for_match = compiled.match_instance(&"".into());
        drop(for_match.map_err(|failed| {
            format!("{}; for a match it has {MATCH_MEMORY_BYTES} bytes of memory", failed.detail)
        })?);
    }
    Ok(compiled)
}

/// A module that was compiled.
struct WasmModule {
    hash: ModuleHash,
    hooks: HookSet,
    pre: InstancePre<HostState>,
    bounds: Bounds,
    /// Fuel that starting it costs beside what it does itself: its data, which is in its code, is copied.
    start_cost: u64,
}

impl fmt::Debug for WasmModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmModule").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl Compiled for WasmModule {
    fn hash(&self) -> ModuleHash {
        self.hash
    }

    fn hooks(&self) -> HookSet {
        self.hooks
    }

    fn instance(&self, config: &Arc<str>) -> Result<Box<dyn Instance>, Failed> {
        let (instance, _) = self.start(self.bounds, config)?;
        Ok(Box::new(instance))
    }

    fn match_instance(&self, config: &Arc<str>) -> Result<(Box<dyn Instance>, u64), Failed> {
        let memory_bytes = self.bounds.memory_bytes.min(MATCH_MEMORY_BYTES);
        let (instance, fuel) = self.start(Bounds { memory_bytes, ..self.bounds }, config)?;
        Ok((Box::new(instance), fuel))
    }
}

impl WasmModule {
    fn start(&self, bounds: Bounds, config: &Arc<str>) -> Result<(WasmInstance, u64), Failed> {
        WasmInstance::start(self.pre.clone(), self.hooks, bounds, self.start_cost, config.clone())
    }
}

//! An instance of a module, and its calls.

use crate::bounds::Bounds;
use crate::state::{HostState, Output};
use carillon_core::ports::modules::{
    Call, Done, Failed, Failure, HookSet, Instance, ModuleHook, Notes, START_FUEL, Verdict,
};
use std::fmt;
use std::sync::Arc;
use wasmtime::{Error, InstancePre, Store, Trap, TypedFunc};

/// Ticks of the engine's clock after which a call ends that fuel did not end.
const DEADLINE_TICKS: u64 = 10;

/// An instance with its memory.
pub(crate) struct WasmInstance {
    pre: InstancePre<HostState>,
    hooks: HookSet,
    bounds: Bounds,
    start_cost: u64,
    config: Arc<str>,
    running: Option<Running>,
}

struct Running {
    store: Store<HostState>,
    /// By the place of the hook in [`ModuleHook::ALL`].
    functions: [Option<TypedFunc<(), i32>>; ModuleHook::ALL.len()],
}

impl fmt::Debug for WasmInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmInstance").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl WasmInstance {
    /// An instance that was started, and the fuel that it took.
    ///
    /// # Errors
    /// If it cannot be started within its bounds.
    pub(crate) fn start(
        pre: InstancePre<HostState>,
        hooks: HookSet,
        bounds: Bounds,
        start_cost: u64,
        config: Arc<str>,
    ) -> Result<(WasmInstance, u64), Failed> {
        let mut instance = WasmInstance { pre, hooks, bounds, start_cost, config, running: None };
        let used = instance.renew(START_FUEL)?;
        Ok((instance, used))
    }
}

impl Instance for WasmInstance {
    fn call(&mut self, call: Call) -> Done {
        let Call { hook, subject, now, seed, fuel } = call;
        let none = |failure, detail: &str| Err(Failed { failure, detail: detail.into() });
        let Some(running) = &mut self.running else {
            let result = none(Failure::Start, "it is not running");
            return Done { subject, result, fuel: 0, notes: Notes::default() };
        };
        let Some(function) = running.functions[hook as usize].clone() else {
            return Done { subject, result: Ok(Verdict::Pass), fuel: 0, notes: Notes::default() };
        };
        let store = &mut running.store;
        let state = store.data_mut();
        state.subject = Some(subject);
        (state.now, state.seed) = (now, seed);
        (state.memory_refused, state.output_refused) = (false, false);
        let result = limit(store, fuel).and_then(|()| function.call(&mut *store, ()));
        let used = fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        let state = store.data_mut();
        let output = std::mem::take(&mut state.output);
        let result = match result {
            Ok(number) => output.verdict(hook, number),
            Err(error) => Err(failed(&error, state)),
        };
        let subject = state.subject.take().expect("it was put there, and no function of the host takes it");
        let notes = std::mem::take(&mut state.notes);
        if result.is_err() {
            // It is in no state to be called again, and its memory is free meanwhile.
            self.running = None;
        }
        Done { subject, result, fuel: used, notes }
    }

    fn renew(&mut self, fuel: u64) -> Result<u64, Failed> {
        self.running = None;
        let mut store =
            Store::new(self.pre.module().engine(), HostState::new(self.bounds, self.config.clone()));
        store.limiter(|state| state);
        let started = limit(&mut store, fuel).and_then(|()| begin(&self.pre, &mut store));
        match started {
            Ok(functions) => {
                store.data_mut().output = Output::default();
                let used = fuel.saturating_sub(store.get_fuel().unwrap_or(0));
                self.running = Some(Running { store, functions });
                Ok(used + self.start_cost)
            }
            Err(error) => {
                let Failed { failure, detail } = failed(&error, store.data());
                let detail = format!("it cannot be started: {}: {detail}", failure.name());
                Err(Failed { failure: Failure::Start, detail: detail.into() })
            }
        }
    }
}

fn limit(store: &mut Store<HostState>, fuel: u64) -> Result<(), Error> {
    store.set_epoch_deadline(DEADLINE_TICKS);
    store.set_fuel(fuel)
}

/// Makes the instance and has it initialise itself.
fn begin(
    pre: &InstancePre<HostState>,
    store: &mut Store<HostState>,
) -> Result<[Option<TypedFunc<(), i32>>; ModuleHook::ALL.len()], Error> {
    let instance = pre.instantiate(&mut *store)?;
    store.data_mut().memory = instance.get_memory(&mut *store, "memory");
    if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        initialize.call(&mut *store, ())?;
    }
    let functions = ModuleHook::ALL.map(|hook| instance.get_typed_func(&mut *store, hook.name()).ok());
    Ok(functions)
}

/// What ended a call.
fn failed(error: &Error, state: &HostState) -> Failed {
    let failure = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Failure::Fuel,
        Some(Trap::StackOverflow) => Failure::Stack,
        Some(Trap::Interrupt) => Failure::Deadline,
        _ if state.output_refused => Failure::Output,
        _ if state.memory_refused => Failure::Memory,
        _ => Failure::Trap,
    };
    let said = error.root_cause().to_string();
    Failed { failure, detail: said.lines().next().unwrap_or_default().chars().take(200).collect() }
}

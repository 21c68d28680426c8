//! The memory and the fuel of a module that is calling the host.

use crate::state::HostState;
use wasmtime::{Caller, Error, Extern, Memory, Result, Trap};

/// What a call of a function of the host costs in fuel, beside the bytes that it copies.
const CALL_COST: u64 = 20;

/// Takes the fuel for a call of the host that copies so many bytes.
pub(crate) fn charge(caller: &mut Caller<'_, HostState>, bytes: i32) -> Result<()> {
    let cost = CALL_COST + u64::from(bytes.max(0).unsigned_abs());
    let left = caller.get_fuel()?.checked_sub(cost);
    caller.set_fuel(left.unwrap_or(0))?;
    left.map(drop).ok_or_else(|| Trap::OutOfFuel.into())
}

/// The module's memory, and what it has beside it.
pub(crate) fn parts<'a>(caller: &'a mut Caller<'_, HostState>) -> Result<(&'a mut [u8], &'a mut HostState)> {
    let memory = memory(caller)?;
    Ok(memory.data_and_store_mut(caller))
}

fn memory(caller: &mut Caller<'_, HostState>) -> Result<Memory> {
    if let Some(memory) = caller.data().memory {
        return Ok(memory);
    }
    // While it starts.
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    memory.ok_or_else(|| Error::msg("it has no memory"))
}

/// A part of the module's memory.
pub(crate) fn slice(memory: &[u8], at: i32, size: i32) -> Result<&[u8]> {
    let (start, size) = (at as u32 as usize, size as u32 as usize);
    start.checked_add(size).and_then(|end| memory.get(start..end)).ok_or_else(outside)
}

/// The module named a place that it does not have.
pub(crate) fn outside() -> Error {
    Trap::MemoryOutOfBounds.into()
}

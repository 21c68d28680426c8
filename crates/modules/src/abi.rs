//! `carillon:hooks@1`: what a module imports and exports. `docs/book/modules.md` is its manual.
//!
//! ```text
//!  interface hooks {                                   // package carillon:hooks@1, as a core module sees it
//!    field:  func(number: s32, at: s32, size: s32) -> s32   // copies a field into memory; its whole length, or -1
//!    output: func(kind: s32, at: s32, size: s32)            // what belongs to the verdict
//!    log:    func(at: s32, size: s32)
//!    count:  func(counter: s32, by: s32)
//!    now:    func() -> s64                                  // milliseconds since the Unix epoch
//!    random: func() -> s64
//!  }
//!  world module {
//!    import hooks
//!    export memory
//!    export submit_message: func() -> s32                   // 0 pass, 1 drop, 2 reject, 3 replace
//!    export room_message:   func() -> s32
//!    export notification:   func() -> s32
//!    export arrived:        func() -> s32
//!    export push_render:    func() -> s32                   // 0 pass, 1 drop, 3 replace
//!    export authorise:      func() -> s32                   // 0 allow, 2 reject
//!    export opened:         func() -> s32                   // 0
//!    export closed:         func() -> s32                   // 0
//!    export event:          func() -> s32                   // 0
//!    export match_tick:     func() -> s32                   // 0 goes on, 1 is over; these three, or none of them
//!    export match_save:     func() -> s32                   // 0
//!    export match_load:     func() -> s32                   // 0 taken, else not
//!  }
//! ```

use crate::guest::{charge, outside, parts, slice};
use crate::state::{HostState, field};
use crate::wasi;
use wasmtime::{Caller, Error, Linker, Result};

/// The name of the interface, with its version.
pub(crate) const HOOKS: &str = "carillon:hooks@1";
const FAMILY: &str = "carillon:hooks";
/// Its functions.
const FUNCTIONS: [&str; 6] = ["field", "output", "log", "count", "now", "random"];

/// Whether a module may import this.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn check_import(module: &str, name: &str) -> std::result::Result<(), String> {
    match module {
        HOOKS if FUNCTIONS.contains(&name) => Ok(()),
        HOOKS => Err(format!("it imports `{name}` of `{HOOKS}`, which has no such function")),
        wasi::MODULE | "env" if wasi::has(module, name) => Ok(()),
        _ if module.starts_with(FAMILY) => {
            Err(format!("it is made for `{module}`; this server has `{HOOKS}`"))
        }
        _ => Err(format!("it imports `{name}` of `{module}`, which is not here: modules have no other I/O")),
    }
}

/// Adds the functions of the host.
pub(crate) fn add(linker: &mut Linker<HostState>) -> Result<()> {
    linker.func_wrap(HOOKS, "field", copy_field)?;
    linker.func_wrap(HOOKS, "output", output)?;
    linker.func_wrap(
        HOOKS,
        "log",
        |mut caller: Caller<'_, HostState>, at: i32, size: i32| -> Result<()> {
            charge(&mut caller, size)?;
            let (memory, state) = parts(&mut caller)?;
            state.log(slice(memory, at, size)?);
            Ok(())
        },
    )?;
    linker.func_wrap(
        HOOKS,
        "count",
        |mut caller: Caller<'_, HostState>, counter: i32, by: i32| -> Result<()> {
            charge(&mut caller, 0)?;
            let counts = &mut caller.data_mut().notes.counts;
            let of =
                counts.get_mut(counter as usize).ok_or_else(|| Error::msg("there is no such counter"))?;
            *of = of.saturating_add(u64::from(by.max(0).unsigned_abs()));
            Ok(())
        },
    )?;
    linker.func_wrap(HOOKS, "now", |caller: Caller<'_, HostState>| caller.data().now.0)?;
    linker.func_wrap(HOOKS, "random", |mut caller: Caller<'_, HostState>| caller.data_mut().random())?;
    wasi::add(linker)
}

fn copy_field(mut caller: Caller<'_, HostState>, number: i32, at: i32, size: i32) -> Result<i32> {
    charge(&mut caller, 0)?;
    let (memory, state) = parts(&mut caller)?;
    let Some(bytes) = field(state.subject.as_ref(), &state.config, number) else { return Ok(-1) };
    let (whole, copied) = (bytes.len(), bytes.len().min(size.max(0) as usize));
    let start = at as u32 as usize;
    let place = start.checked_add(copied).and_then(|end| memory.get_mut(start..end));
    place.ok_or_else(outside)?.copy_from_slice(&bytes[..copied]);
    charge(&mut caller, copied as i32)?;
    Ok(i32::try_from(whole).unwrap_or(i32::MAX))
}

fn output(mut caller: Caller<'_, HostState>, kind: i32, at: i32, size: i32) -> Result<()> {
    charge(&mut caller, size)?;
    let (memory, state) = parts(&mut caller)?;
    let bytes = slice(memory, at, size)?;
    if state.output.bytes().saturating_add(bytes.len()) > state.bounds.output_bytes {
        state.output_refused = true;
        return Err(Error::msg(format!("it wrote more than {} bytes", state.bounds.output_bytes)));
    }
    state.output.put(kind, bytes).map_err(|wrong| {
        state.output_refused = true;
        Error::msg(wrong)
    })
}

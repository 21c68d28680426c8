//! What compilers have their programs import although they need it not: a few functions of WASI's first preview and of
//! AssemblyScript. There is no file, no network and no clock behind them; what is written to a file descriptor is a line of the log.

use crate::guest::{charge, outside, parts, slice};
use crate::state::HostState;
use wasmtime::{Caller, Error, Linker, Result};

/// The module that compilers import it from.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";

/// Errors of WASI.
const SUCCESS: i32 = 0;
const BADF: i32 = 8;
const NOSYS: i32 = 52;

/// Functions that answer an error and do nothing, by how many numbers they take; `L` is one of 64 bits.
const REFUSED: [(&str, &str, i32); 8] = [
    ("fd_close", "i", BADF),
    ("fd_fdstat_get", "ii", BADF),
    ("fd_fdstat_set_flags", "ii", BADF),
    ("fd_prestat_get", "ii", BADF),
    ("fd_prestat_dir_name", "iii", BADF),
    ("fd_read", "iiii", BADF),
    ("fd_seek", "iLii", BADF),
    ("poll_oneoff", "iiii", NOSYS),
];

/// Functions that are done in full.
const DONE: [&str; 9] = [
    "args_get",
    "args_sizes_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "random_get",
    "sched_yield",
];

/// Whether a module may import this.
pub(crate) fn has(module: &str, name: &str) -> bool {
    match module {
        MODULE => DONE.contains(&name) || REFUSED.iter().any(|(refused, ..)| *refused == name),
        _ => name == "abort",
    }
}

/// Adds them.
pub(crate) fn add(linker: &mut Linker<HostState>) -> Result<()> {
    linker.func_wrap("env", "abort", |_: i32, _: i32, line: i32, column: i32| -> Result<()> {
        Err(Error::msg(format!("it aborted at {line}:{column}")))
    })?;
    linker.func_wrap(MODULE, "proc_exit", |code: i32| -> Result<()> {
        Err(Error::msg(format!("it exited with {code}")))
    })?;
    linker.func_wrap(MODULE, "sched_yield", || SUCCESS)?;
    linker.func_wrap(MODULE, "args_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "environ_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "args_sizes_get", no_strings)?;
    linker.func_wrap(MODULE, "environ_sizes_get", no_strings)?;
    linker.func_wrap(MODULE, "clock_time_get", clock)?;
    linker.func_wrap(MODULE, "random_get", random)?;
    linker.func_wrap(MODULE, "fd_write", write)?;
    for (name, takes, error) in REFUSED {
        match takes {
            "i" => linker.func_wrap(MODULE, name, move |_: i32| error)?,
            "ii" => linker.func_wrap(MODULE, name, move |_: i32, _: i32| error)?,
            "iii" => linker.func_wrap(MODULE, name, move |_: i32, _: i32, _: i32| error)?,
            "iLii" => linker.func_wrap(MODULE, name, move |_: i32, _: i64, _: i32, _: i32| error)?,
            _ => linker.func_wrap(MODULE, name, move |_: i32, _: i32, _: i32, _: i32| error)?,
        };
    }
    Ok(())
}

fn put(memory: &mut [u8], at: i32, bytes: &[u8]) -> Result<()> {
    let start = at as u32 as usize;
    let place = start.checked_add(bytes.len()).and_then(|end| memory.get_mut(start..end));
    place.ok_or_else(outside)?.copy_from_slice(bytes);
    Ok(())
}

fn number(memory: &[u8], at: i32) -> Result<i32> {
    let bytes = slice(memory, at, 4)?;
    Ok(i32::from_le_bytes(bytes.try_into().expect("four bytes were asked for")))
}

fn no_strings(mut caller: Caller<'_, HostState>, count: i32, bytes: i32) -> Result<i32> {
    let (memory, _) = parts(&mut caller)?;
    put(memory, count, &[0; 4])?;
    put(memory, bytes, &[0; 4])?;
    Ok(SUCCESS)
}

/// The time that the call was given, for every clock.
fn clock(mut caller: Caller<'_, HostState>, _: i32, _: i64, at: i32) -> Result<i32> {
    charge(&mut caller, 8)?;
    let (memory, state) = parts(&mut caller)?;
    // While it starts no time is known, and Go ends where its clock says zero.
    put(memory, at, &state.now.0.max(1).wrapping_mul(1_000_000).to_le_bytes())?;
    Ok(SUCCESS)
}

fn random(mut caller: Caller<'_, HostState>, at: i32, size: i32) -> Result<i32> {
    charge(&mut caller, size)?;
    let (memory, state) = parts(&mut caller)?;
    slice(memory, at, size)?;
    for done in (0..size).step_by(8) {
        let bytes = state.random().to_le_bytes();
        put(memory, at.wrapping_add(done), &bytes[..(size - done).min(8) as usize])?;
    }
    Ok(SUCCESS)
}

/// A line for the log, whatever it is written to.
fn write(mut caller: Caller<'_, HostState>, _: i32, parts_at: i32, count: i32, written: i32) -> Result<i32> {
    charge(&mut caller, 0)?;
    let mut all = 0_i32;
    for part in 0..count.clamp(0, 64) {
        let (memory, state) = parts(&mut caller)?;
        let entry = parts_at.wrapping_add(part.wrapping_mul(8));
        let (at, size) = (number(memory, entry)?, number(memory, entry.wrapping_add(4))?);
        state.log(slice(memory, at, size)?);
        all = all.saturating_add(size);
        charge(&mut caller, size)?;
    }
    let (memory, _) = parts(&mut caller)?;
    put(memory, written, &all.to_le_bytes())?;
    Ok(SUCCESS)
}

//! What operators look into when something is wrong: the costliest accounts, one account's traffic as it happens, a notification's
//! way to its device, and the flight recorders.

pub(crate) mod dump;
pub(crate) mod probe;
pub(crate) mod top;
pub(crate) mod trace;

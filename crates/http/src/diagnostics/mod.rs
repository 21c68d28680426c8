//! What operators look into when something is wrong: the costliest accounts, one account's traffic as it happens, and the flight recorders.

pub(crate) mod dump;
pub(crate) mod top;
pub(crate) mod trace;

//! What anybody may ask for without a key: the node's health, where clients connect, and the pages inside the binary.

pub(crate) mod console;
pub(crate) mod health;
pub(crate) mod well_known;

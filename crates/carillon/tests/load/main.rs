//! The load tester's engine against a real node: each deed at a small size.

mod deeds;
mod preflight;
mod support;

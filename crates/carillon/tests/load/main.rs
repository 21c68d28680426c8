//! The load tester's engine against a real node: each action at a small size.

mod actions;
mod preflight;
mod support;
mod upgrade;

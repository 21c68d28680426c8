//! The load tester's command line against a real node: workers are processes, as they are for everyone.

mod failures;
mod runs;
mod support;

//! Keeping what is in the memory of the process to itself.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Has a crash of this process write no file of its memory, neither by itself nor by a program that the system has for that, and keeps other
/// processes of its user from reading it.
///
/// # Errors
/// If the system refuses.
pub fn keep_private() -> std::io::Result<()> {
    // Not the hard limit: the process of another binary that takes over may be told otherwise.
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    setrlimit(Resource::Core, limit)?;
    // A program that is given core dumps by a pipe gets them whatever that limit is (core(5)).
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;

    #[test]
    fn nothing_is_dumped_and_the_process_still_knows_itself() {
        keep_private().expect("it may");
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().ok(), Some(DumpableBehavior::NotDumpable));
        // What the node reads of itself, for its limit of connections and its figures.
        assert!(std::fs::read_dir("/proc/self/fd").is_ok_and(|files| files.count() > 0));
        assert!(std::fs::read_to_string("/proc/self/limits").is_ok());
        assert!(std::env::current_exe().is_ok());
    }
}

//! Hash maps for the core: seeded per process by an argument is not needed, because every key that a stranger can
//! choose is bounded in number (accounts, connected sessions) and `hashbrown`'s `foldhash` is seeded at build.

/// A hash map of the core.
pub type Map<K, V> = hashbrown::HashMap<K, V>;
/// A hash set of the core.
pub type Set<K> = hashbrown::HashSet<K>;

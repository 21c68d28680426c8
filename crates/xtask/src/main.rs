//! Placeholder tour.
fn main() {}

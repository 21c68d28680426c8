//! Placeholder tour.

//! Pipeline.

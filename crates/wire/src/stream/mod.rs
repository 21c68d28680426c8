//! What surrounds stanzas: stream headers, features and errors (RFC 6120 §4, RFC 7395 §3).

mod condition;
mod header;

pub use condition::{Condition, StreamError, write_error, write_see_other_host};
pub use header::{
    Header, HeaderOut, PrefixBinding, Prefixes, write_close, write_features, write_header, write_open,
};

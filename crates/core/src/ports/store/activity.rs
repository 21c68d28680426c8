//! When accounts were available for the last time (XEP-0012).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads};
use crate::model::{DomainId, UnixMs};

questions! {
    Activity,
    reads {
        LastAvailable => Option<UnixMs>,
    }
    writes {
        NoteAvailable => (),
    }
    once {}
    loads {
        NoteAvailable,
    }
}

/// When an account was available for the last time, as far as that was noted; none of one that is not there.
#[derive(Clone, Debug)]
pub struct LastAvailable {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// These accounts were available for the last time at these times. What was noted of a later time stays; who is not there is passed over.
#[derive(Clone, Debug)]
pub struct NoteAvailable {
    pub of: Vec<Available>,
}

/// When an account was available.
#[derive(Clone, Debug)]
pub struct Available {
    pub domain: DomainId,
    pub local: Box<str>,
    pub at: UnixMs,
}

impl Loads for NoteAvailable {
    fn load(&self) -> Load<'_> {
        let bytes = self.of.iter().map(|one| size_of::<Available>() + one.local.len()).sum();
        Load { bytes, account: None }
    }
}

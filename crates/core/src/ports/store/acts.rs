//! Administrative acts: what was done by which key, for those who look into it later.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads};
use crate::model::{Act, ActId, DomainId, KeyId, UnixMs};

questions! {
    Acts,
    reads {
        ListActs => Vec<(ActId, Act)>,
    }
    writes {}
    once {
        NoteAct => (),
    }
    loads {
        NoteAct,
    }
}

/// The acts before this one, the newest first, at most so many. `domain`: of keys that are bound to it; `key`: of this key.
#[derive(Clone, Debug)]
pub struct ListActs {
    pub domain: Option<DomainId>,
    pub key: Option<KeyId>,
    pub before: ActId,
    pub limit: u16,
}

/// Notes an act, and forgets up to [`FORGOTTEN_MAX`] of those that were noted before `keep_since`, the oldest first.
#[derive(Clone, Debug)]
pub struct NoteAct {
    pub act: Act,
    pub keep_since: UnixMs,
}

/// How many acts are forgotten when one is noted.
pub const FORGOTTEN_MAX: u32 = 2;

impl Loads for NoteAct {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.act.bytes(), account: None }
    }
}

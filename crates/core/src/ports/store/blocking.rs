//! Block lists.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::{BlockListBounds, BlockListChange, BlockListEdit, DomainId};

questions! {
    Blocking,
    reads {}
    writes {}
    once {
        ChangeBlockList => ChangeBlockListAnswer,
    }
}

/// Changes an account's block list by the rules of [`BlockListEdit::apply`].
#[derive(Clone, Debug)]
pub struct ChangeBlockList {
    pub domain: DomainId,
    pub local: Box<str>,
    pub edit: BlockListEdit,
    pub bounds: BlockListBounds,
}

/// What became of [`ChangeBlockList`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeBlockListAnswer {
    /// It says this now.
    Changed(Box<BlockListChange>),
    /// There is no such account.
    NoAccount,
    /// The list is full.
    Full,
}

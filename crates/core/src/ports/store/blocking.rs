//! Block lists and privacy lists.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::question::{Load, Loads};
use crate::model::{
    BlockListBounds, BlockListChange, BlockListEdit, DomainId, EditedLists, Generation, PrivacyBounds,
    PrivacyChange, PrivacyEdit, PrivacyLists, PrivacyRefusal,
};
use carillon_wire::jid::BareJid;

questions! {
    Blocking,
    reads {}
    writes {}
    once {
        ChangeBlockList => ChangeBlockListAnswer,
        ChangePrivacyLists => ChangePrivacyListsAnswer,
    }
    loads {
        ChangePrivacyLists,
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

/// Changes an account's privacy lists (XEP-0016) by the rules of [`PrivacyLists::edited`](crate::model::PrivacyLists::edited): with them, in the same
/// commit, the block list, as far as it is a part of them.
#[derive(Clone, Debug)]
pub struct ChangePrivacyLists {
    pub domain: DomainId,
    pub local: Box<str>,
    pub edit: PrivacyEdit,
    pub bounds: PrivacyBounds,
    pub block_list: BlockListBounds,
}

impl Loads for ChangePrivacyLists {
    fn load(&self) -> Load<'_> {
        let bytes = match &self.edit {
            PrivacyEdit::Put(list) => PrivacyLists { default: None, lists: vec![list.clone()] }.bytes(),
            PrivacyEdit::Remove(_) | PrivacyEdit::Default(_) => 0,
        };
        Load { bytes, account: Some((self.domain, &self.local)) }
    }
}

/// What became of [`ChangePrivacyLists`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangePrivacyListsAnswer {
    /// It was done: first the lists changed, then the block list, if it did. Neither where all was so already.
    Changed(Option<Box<PrivacyChange>>, Option<Box<BlockListChange>>),
    /// There is no such account.
    NoAccount,
    /// It is not done.
    Refused(PrivacyRefusal),
}

impl ChangePrivacyLists {
    /// What a store answers that has made these of an account's lists: the changes, each with a generation of the record of its own.
    pub fn changed(
        &self,
        account: &BareJid,
        before: Generation,
        was: &PrivacyLists,
        edited: &EditedLists,
    ) -> ChangePrivacyListsAnswer {
        let EditedLists { lists, blocked, unblocked } = edited;
        let next = Generation(before.0 + 1);
        let privacy = (lists != was).then(|| {
            let changed = match &self.edit {
                PrivacyEdit::Put(list) => vec![list.name.clone()],
                PrivacyEdit::Remove(name) => vec![name.clone()],
                PrivacyEdit::Default(_) => Vec::new(),
            };
            let (account, lists) = (account.clone(), lists.clone());
            Box::new(PrivacyChange { account, before, after: next, lists, changed })
        });
        let between = if privacy.is_some() { next } else { before };
        let block_list = (!blocked.is_empty() || !unblocked.is_empty()).then(|| {
            Box::new(BlockListChange {
                account: account.clone(),
                before: between,
                after: Generation(between.0 + 1),
                blocked: blocked.clone(),
                unblocked: unblocked.clone(),
                by_lists: privacy.is_some(),
            })
        });
        ChangePrivacyListsAnswer::Changed(privacy, block_list)
    }
}

impl ChangePrivacyListsAnswer {
    /// The generation of the record after what was done, if anything was.
    pub fn generation(&self) -> Option<Generation> {
        let ChangePrivacyListsAnswer::Changed(privacy, block_list) = self else { return None };
        block_list.as_ref().map(|change| change.after).or(privacy.as_ref().map(|change| change.after))
    }
}

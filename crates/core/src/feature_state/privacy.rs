//! What is known of a session, and of an account at its home.

use crate::model::{PrivacyLists, RuleIndex};

/// Whether a session uses privacy lists, and which it has chosen: eight bytes for one that does not.
#[derive(Debug, Default)]
pub struct ChosenList(pub(crate) Option<Box<Choice>>);

crate::form! { struct ChosenList(choice) }

/// The choice of a session that uses privacy lists.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// The list that decides for this session alone, if it has chosen one (XEP-0016 §2.4).
    pub(crate) active: Option<Box<str>>,
}

crate::form! { struct Choice { active } }

impl ChosenList {
    /// The list that the session has chosen.
    pub(crate) fn active(&self) -> Option<&str> {
        self.0.as_ref()?.active.as_deref()
    }

    /// The session uses lists.
    pub(crate) fn choice(&mut self) -> &mut Choice {
        self.0.get_or_insert_default()
    }
}

/// The lists of an account: eight bytes for none.
#[derive(Debug, Default)]
pub struct Lists(Option<Box<KeptLists>>);

/// Lists, and by whom their rules are about.
#[derive(Debug)]
struct KeptLists {
    lists: PrivacyLists,
    /// Of each list.
    indexes: Vec<RuleIndex>,
    /// What of the default list decides beside the block list.
    default_rest: RuleIndex,
}

impl Lists {
    /// Bytes that they take beside their own size.
    pub fn bytes(&self) -> usize {
        let of = |kept: &KeptLists| {
            let indexes = kept.indexes.iter().chain([&kept.default_rest]);
            let indexes: usize = indexes.map(|index| size_of::<RuleIndex>() + index.bytes()).sum();
            size_of::<KeptLists>() + kept.lists.bytes() + indexes
        };
        self.0.as_deref().map_or(0, of)
    }

    /// Lists that were read.
    pub(crate) fn of(lists: &PrivacyLists) -> Lists {
        let keep = || {
            let indexes = lists.lists.iter().map(|list| RuleIndex::of(&list.rules)).collect();
            Box::new(KeptLists {
                lists: lists.clone(),
                indexes,
                default_rest: RuleIndex::of(lists.default_rest()),
            })
        };
        Lists((!lists.is_empty()).then(keep))
    }

    /// All of them, if there are any.
    pub(crate) fn get(&self) -> Option<&PrivacyLists> {
        self.0.as_ref().map(|kept| &kept.lists)
    }

    /// The rules of the list with this name.
    pub(crate) fn rules(&self, name: &str) -> Option<&RuleIndex> {
        let kept = self.0.as_deref()?;
        let place = kept.lists.lists.binary_search_by(|list| (*list.name).cmp(name)).ok()?;
        kept.indexes.get(place)
    }

    /// The rules of the default list that decide beside the block list.
    pub(crate) fn default_rest(&self) -> Option<&RuleIndex> {
        self.0.as_ref().map(|kept| &kept.default_rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::survives;

    #[test]
    fn its_form() {
        survives(&ChosenList::default());
        survives(&ChosenList(Some(Box::default())));
        survives(&ChosenList(Some(Box::new(Choice { active: Some("work".into()) }))));
        assert_eq!((size_of::<ChosenList>(), size_of::<Lists>()), (8, 8));
    }
}

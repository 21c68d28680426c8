//! What is known of a session, and of an account at its home.

use crate::model::PrivacyLists;

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
pub struct Lists(pub(crate) Option<Box<PrivacyLists>>);

impl Lists {
    /// Bytes that they take beside their own size.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |lists| size_of::<PrivacyLists>() + lists.bytes())
    }

    /// Lists that were read.
    pub(crate) fn of(lists: &PrivacyLists) -> Lists {
        Lists((!lists.is_empty()).then(|| Box::new(lists.clone())))
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

//! Which messages are for archives (XEP-0313), and what accounts want in theirs (XEP-0441).

use crate::error::StanzaError;
use crate::model::{ArchiveDefault, ArchivePreferences};
use crate::session::mam;
use bytes::Bytes;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, Kind, MessageType, Stanza};
use carillon_wire::xml::Element;
use carillon_wire::{Framing, ns};

/// Whether a message is for the archives of accounts.
pub(super) fn is_kept(stanza: &Stanza) -> bool {
    if !matches!(stanza.kind, Kind::Message(MessageType::Chat | MessageType::Normal)) {
        return false;
    }
    mam::is_kept(stanza)
}

/// The bytes to keep.
pub(super) fn write(stanza: &Stanza) -> Bytes {
    let mut out = Vec::new();
    stanza.write(&mut out, Framing::Tcp);
    out.into()
}

const DEFAULTS: [(&str, ArchiveDefault); 3] = [
    ("always", ArchiveDefault::Always),
    ("never", ArchiveDefault::Never),
    ("roster", ArchiveDefault::Roster),
];

/// What an account wants in its archive.
pub(super) fn preferences(preferences: &ArchivePreferences) -> Element {
    let default = DEFAULTS.iter().find(|(_, default)| *default == preferences.default);
    let rules = |name: &'static str, jids: &[Jid]| {
        jids.iter().fold(Element::new(name, ns::MAM), |rules, jid| {
            rules.with_child(Element::new("jid", ns::MAM).with_text(jid.as_str()))
        })
    };
    Element::new("prefs", ns::MAM)
        .with_attr("default", default.map_or("always", |(name, _)| name))
        .with_child(rules("always", &preferences.always))
        .with_child(rules("never", &preferences.never))
}

/// What an account says that it wants.
pub(super) fn read_preferences(prefs: &Element) -> Result<ArchivePreferences, StanzaError> {
    let default = DEFAULTS.iter().find(|(name, _)| prefs.attr("default") == Some(name));
    let (_, default) = default.ok_or_else(|| bad_request("default is always, never or roster"))?;
    let rules = |name| {
        let jids = prefs.child(name, ns::MAM).map(Element::children).into_iter().flatten();
        let jids = jids.filter(|child| child.is("jid", ns::MAM)).map(|child| Jid::new(child.text().trim()));
        let mut jids =
            jids.collect::<Result<Vec<Jid>, _>>().map_err(|_| StanzaError::new(Condition::JidMalformed))?;
        jids.sort();
        jids.dedup();
        Ok::<_, StanzaError>(jids)
    };
    Ok(ArchivePreferences { default: *default, always: rules("always")?, never: rules("never")? })
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}

//! JIDs and local parts as they stand in requests.

use crate::problem::{Code, Problem};
use carillon_core::model::Domain;
use carillon_wire::jid::{BareJid, Jid};

/// The account that `text` names: a bare JID, or a local part of `domain`.
pub(crate) fn account(text: &str, domain: &str) -> Result<BareJid, Problem> {
    let jid = if text.contains(['@', '/']) {
        BareJid::new(text).map_err(|error| invalid(text, &error))?
    } else {
        BareJid::from_parts(Some(text), domain).map_err(|error| invalid(text, &error))?
    };
    match jid.local() {
        Some(_) => Ok(jid),
        None => Err(Problem::new(Code::InvalidJid, format!("`{}` names no account", shorten(text)))),
    }
}

/// The local part of an account.
pub(crate) fn local(jid: &BareJid) -> Box<str> {
    jid.local().expect("`account` gives no JID without a local part").into()
}

/// The bare or full JID that `text` names, completed with `domain` when it is but a local part.
pub(crate) fn session(text: &str, domain: &str) -> Result<Jid, Problem> {
    if text.contains('@') {
        let jid = Jid::new(text).map_err(|error| invalid(text, &error))?;
        return match jid.local() {
            Some(_) => Ok(jid),
            None => Err(Problem::new(Code::InvalidJid, format!("`{}` names no account", shorten(text)))),
        };
    }
    account(text, domain).map(|bare| bare.to_jid())
}

/// A device's id, which is a local part, in `domain`.
pub(crate) fn device(id: &str, domain: &Domain) -> Result<BareJid, Problem> {
    BareJid::from_parts(Some(id), &domain.name).map_err(|error| invalid(id, &error))
}

fn invalid(text: &str, error: &carillon_wire::jid::JidError) -> Problem {
    Problem::new(Code::InvalidJid, format!("`{}`: {error}", shorten(text)))
}

/// What a problem repeats of a text that came in.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 100 {
        text.to_owned()
    } else {
        text.chars().take(100).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_part_is_completed() {
        assert_eq!(account("alice", "localhost").unwrap().as_str(), "alice@localhost");
        assert_eq!(account("Alice@LocalHost", "other.example").unwrap().as_str(), "alice@localhost");
        for wrong in ["", "@localhost", "alice@", "alice@localhost/phone", "al ice", "a\"b"] {
            assert_eq!(account(wrong, "localhost").unwrap_err().code(), Code::InvalidJid, "{wrong}");
        }
    }

    #[test]
    fn a_session_may_be_full_or_bare() {
        assert_eq!(session("alice@localhost/Phone 1", "x").unwrap().as_str(), "alice@localhost/Phone 1");
        assert_eq!(session("alice", "localhost").unwrap().as_str(), "alice@localhost");
        assert!(session("localhost/x@y", "localhost").is_err());
    }
}

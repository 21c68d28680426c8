//! The message archive of an account (XEP-0313).

use super::{ArchiveId, UnixMs, is_covered};
use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{self, Context, Stanza, Unit};
use carillon_wire::xml::Limits;
use carillon_wire::xml::writer::Writer;

/// A message in an account's archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMessage {
    /// Its number; later messages of an archive have higher ones.
    pub id: ArchiveId,
    /// When the server took it. Not earlier than that of a message before it, unless the clock was set back.
    pub received: UnixMs,
    /// The whole `<message/>` as it was sent, in namespace `jabber:client`.
    pub stanza: Bytes,
}

impl ArchivedMessage {
    /// It as a stanza.
    pub fn read(&self) -> Option<Stanza> {
        read(&self.stanza)
    }

    /// Writes it as it is forwarded (XEP-0297), with the time at which the server took it.
    pub fn write_forwarded(&self, writer: &mut Writer<'_>) {
        writer.start_in("forwarded", ns::FORWARD).close_start();
        writer.start_in("delay", ns::DELAY).attr("stamp", &self.received.to_xmpp()).close_empty();
        // The stanza declares no namespace of its own, as it must in another element.
        let rest = self.stanza.get(1 + "message".len()..).unwrap_or_default();
        writer.start_in("message", ns::CLIENT).raw(rest).end("forwarded");
    }
}

/// Which messages enter an account's archive where no rule names the other side (XEP-0313 §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveDefault {
    /// All.
    #[default]
    Always,
    /// None.
    Never,
    /// Those from and to contacts of the account's roster.
    Roster,
}

/// What an account wants in its archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivePreferences {
    /// Where no rule names the other side.
    pub default: ArchiveDefault,
    /// Whose messages enter it whatever the default; sorted.
    pub always: Vec<Jid>,
    /// Whose messages do not; sorted.
    pub never: Vec<Jid>,
}

impl ArchivePreferences {
    /// Whether a message from or to this address enters the archive. Of two rules the one about the full address counts, and of two about the
    /// same the one against.
    pub fn wants(&self, other: &Jid, is_contact: impl FnOnce() -> bool) -> bool {
        let names = |rules: &[Jid], is_bare| {
            rules.iter().any(|rule| rule.is_bare() == is_bare && is_covered(other, rule))
        };
        for is_bare in [false, true] {
            if names(&self.never, is_bare) {
                return false;
            }
            if names(&self.always, is_bare) {
                return true;
            }
        }
        match self.default {
            ArchiveDefault::Always => true,
            ArchiveDefault::Never => false,
            ArchiveDefault::Roster => is_contact(),
        }
    }

    /// Bytes of the addresses in its rules.
    pub fn bytes(&self) -> usize {
        self.always.iter().chain(&self.never).map(|jid| jid.as_str().len()).sum()
    }
}

/// An account between which and somebody a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveSide {
    /// The account's domain.
    pub domain: super::DomainId,
    /// The account's name.
    pub local: Box<str>,
    /// The other side.
    pub peer: Jid,
}

/// Which messages of an archive are asked for (XEP-0313 §4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveFilter {
    /// In the conversation with this account; from or to this resource, if it names one.
    pub with: Option<Jid>,
    /// Not before this time.
    pub start: Option<UnixMs>,
    /// Not after this time.
    pub end: Option<UnixMs>,
    /// Behind this message, which must be in the archive.
    pub after: Option<ArchiveId>,
    /// Before this message, which must be in the archive.
    pub before: Option<ArchiveId>,
}

/// Where a page of an archive begins (XEP-0059).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveStart {
    /// At the oldest message, towards newer ones.
    First,
    /// Behind this message, which must be in the archive.
    After(ArchiveId),
    /// At the newest message, towards older ones.
    Last,
    /// Before this message, which must be in the archive, towards older ones.
    Before(ArchiveId),
}

impl ArchiveStart {
    /// Whether the page goes towards older messages.
    pub fn is_backward(self) -> bool {
        matches!(self, ArchiveStart::Last | ArchiveStart::Before(_))
    }
}

/// The ends of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveEnds {
    /// The oldest message and its time.
    pub first: (ArchiveId, UnixMs),
    /// The newest.
    pub last: (ArchiveId, UnixMs),
}

/// How long a domain keeps what is in the archives of its accounts. What exceeds a bound is removed, the oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveBounds {
    /// Days; 0 for ever.
    pub days: u32,
    /// Messages of one account; 0 for any number.
    pub messages: u32,
    /// Bytes of the messages of one account; 0 for any number.
    pub bytes: u64,
}

impl ArchiveBounds {
    /// Before which time a message is too old.
    pub fn cutoff(self, now: UnixMs) -> UnixMs {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        match self.days {
            0 => UnixMs(0),
            days => UnixMs(now.0.saturating_sub(u64::from(days) * DAY_MS)),
        }
    }

    /// Whether an archive that holds so much has to lose its oldest message.
    pub fn are_exceeded(self, messages: u64, bytes: u64) -> bool {
        (self.messages > 0 && messages > u64::from(self.messages)) || (self.bytes > 0 && bytes > self.bytes)
    }
}

/// Whether a message is from or to this address; a bare one stands for all its resources.
pub fn is_with(stanza: &[u8], with: &Jid) -> bool {
    let Some(stanza) = read(stanza) else { return false };
    let is_it = |jid: &Jid| if with.is_bare() { jid.bare_str() == with.as_str() } else { jid == with };
    stanza.from.as_ref().is_some_and(is_it) || stanza.to.as_ref().is_some_and(is_it)
}

/// A message of an archive.
pub(super) fn read(stanza: &[u8]) -> Option<Stanza> {
    let context = Context::new(Framing::Tcp, Limits::trusted());
    match stanza::read(stanza, &context) {
        Ok(Unit::Stanza(stanza)) => Some(stanza),
        _ => None,
    }
}

/// The time under which a message is kept that was received at `received`, behind one of `last`: they ascend, so that they can be searched, although the
/// clocks of those who receive messages differ a little. A clock that was set back is believed.
pub fn kept_at(received: UnixMs, last: UnixMs) -> UnixMs {
    const DIFFERENCE_MS: u64 = 60_000;
    if received < last && last.0 - received.0 <= DIFFERENCE_MS { last } else { received }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_full_addresses_come_first_and_those_against_before_those_for() {
        let jids = |list: &[&str]| list.iter().map(|jid| Jid::new(jid).unwrap()).collect::<Vec<_>>();
        let preferences = ArchivePreferences {
            default: ArchiveDefault::Roster,
            always: jids(&["bob@example.org/phone", "carol@example.org", "dave@example.org"]),
            never: jids(&["bob@example.org", "dave@example.org"]),
        };
        let wants = |jid: &str, is_contact| preferences.wants(&Jid::new(jid).unwrap(), || is_contact);
        assert!(wants("bob@example.org/phone", false));
        assert!(!wants("bob@example.org/desk", true));
        assert!(wants("carol@example.org/desk", false));
        assert!(!wants("dave@example.org", true));
        assert!(wants("eve@example.org", true));
        assert!(!wants("eve@example.org", false));
    }

    #[test]
    fn times_ascend_unless_the_clock_was_set_back() {
        let at = |received, last| kept_at(UnixMs(received), UnixMs(last)).0;
        assert_eq!(
            [at(100_000, 90_000), at(90_000, 100_000), at(30_000, 100_000)],
            [100_000, 100_000, 30_000]
        );
    }

    #[test]
    fn bounds_say_what_is_too_much() {
        let bounds = ArchiveBounds { days: 2, messages: 3, bytes: 100 };
        let now = UnixMs(3 * 24 * 60 * 60 * 1000);
        assert_eq!(bounds.cutoff(now), UnixMs(24 * 60 * 60 * 1000));
        assert_eq!(ArchiveBounds::default().cutoff(now), UnixMs(0));
        assert!(bounds.are_exceeded(4, 0) && bounds.are_exceeded(0, 101) && !bounds.are_exceeded(3, 100));
        assert!(!ArchiveBounds::default().are_exceeded(1 << 40, 1 << 40));
    }
}

//! Whose presence sessions are shown, and who is shown theirs: what changes with the rules is told (XEP-0016 §2.10, §2.11).

use crate::message::AccountMessage;
use crate::model::{SessionId, Standing, StanzaKind};
use crate::session::homes::AtHome;
use crate::session::hook::{Direction, Seen};
use crate::session::{Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{PresenceType, Stanza};

/// The presence that passes between an available session and the account's contacts.
pub(super) struct Shown {
    session: SessionId,
    /// Who is shown that of the session, sorted.
    to: Vec<Jid>,
    /// Whose presence the session is shown, sorted.
    of: Vec<Jid>,
}

/// What is shown to and by the account's available sessions.
pub(super) fn of_all(home: &AtHome<'_>, sessions: &Sessions, cx: &Cx<'_>) -> Vec<Shown> {
    let available = sessions.bound_of(home.account.as_str());
    let available = available.iter().filter(|session| session.presence.is_available());
    let shown = available.map(|session| {
        let list = cx.pipeline.list_of(session);
        let passing = |stands: fn(Standing) -> bool, way| {
            let contacts = home.contacts(stands, cx).into_iter().map(|jid| jid.to_jid());
            let passes = |jid: &Jid| cx.pipeline.denies(home.record, way, jid, list).is_none();
            let mut passing: Vec<Jid> = contacts.filter(passes).collect();
            passing.sort();
            passing
        };
        Shown {
            session: session.id,
            to: passing(|standing| standing.from, (Direction::Out, StanzaKind::PresenceOut)),
            of: passing(|standing| standing.to, (Direction::In, StanzaKind::PresenceIn)),
        }
    });
    shown.collect()
}

/// The rules are others now: tells what is shown that was not before, and takes back what is not shown any more.
pub(super) fn tell(before: &[Shown], home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    // Those that were available still are: nothing else happened meanwhile.
    let now = of_all(home, sessions, cx);
    for was in before {
        let Some(is) = now.iter().find(|is| is.session == was.session) else { continue };
        for (entries, is_seen) in [(without(&was.to, &is.to), false), (without(&is.to, &was.to), true)] {
            if !entries.is_empty() {
                let seen = Seen { entries: &entries, is_seen, session: Some(was.session) };
                cx.pipeline.seen.iter().for_each(|hook| hook(home, &seen, sessions, cx));
            }
        }
        let Some(session) = sessions.bound(was.session) else { continue };
        for gone in without(&was.of, &is.of) {
            let presence =
                Stanza::presence(PresenceType::Unavailable).with_from(gone).with_to(session.jid.clone());
            session.send(&presence, &Track::Nothing, cx);
        }
        let reachable =
            |jid: &BareJid| cx.shard.domains.reachable(home.account.domain(), jid.domain()).is_some();
        let asked: Vec<BareJid> = without(&is.of, &was.of).iter().map(Jid::bare).filter(reachable).collect();
        let probe = AccountMessage::Probe(session.jid.clone());
        cx.tell_accounts(asked.into_iter(), &probe);
    }
}

/// Those of a list that are not in another; both are sorted.
fn without(these: &[Jid], those: &[Jid]) -> Vec<Jid> {
    these.iter().filter(|jid| those.binary_search(jid).is_err()).cloned().collect()
}

//! Push notifications (XEP-0357): apps say where pushes for their account go, and what is stored for the account is pushed there by the HTTP side,
//! which finds it in the store.

mod xml;

#[cfg(test)]
mod tests;

use crate::error::{StanzaError, store_unavailable};
use crate::model::{Audience, Notification, Payload as Carried, ROOM_LISTENERS_MAX, Wake, room_topic};
use crate::ports::store::push::{DisablePush, EnablePush, EnablePushAnswer};
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec, Stored};
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Payload, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "push",
    about: "Wakes apps whose accounts have no session, by push services.",
    specs: &[Spec {
        id: "XEP-0357",
        title: "Push Notifications",
        version: "0.4.1",
        coverage: "enable and disable, with publish-options, for the server's own gateway at `push.DOMAIN`, which sends Web Push (RFC 8030, 8291, \
                   8292), to APNs and FCM, and webhooks. Not there: app servers at other addresses.",
    }],
    account_features: &[PUSH],
    hooks: Hooks {
        iq: &[
            IqHandler { kind: IqType::Set, name: "enable", ns: PUSH, at: At::Account, handle: enable },
            IqHandler { kind: IqType::Set, name: "disable", ns: PUSH, at: At::Account, handle: disable },
            IqHandler { kind: IqType::Get, name: "vapid", ns: GATEWAY, at: At::Account, handle: vapid },
        ],
        wakes: Some(wakes),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The namespace of XEP-0357.
const PUSH: &str = "urn:xmpp:push:0";
/// What the gateway says of itself.
const GATEWAY: &str = "urn:carillon:push:0";

/// XEP-0357 §5: an app wants to be woken.
fn enable(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    if !is_ours(request.payload, session)? {
        let text =
            "app servers at other addresses are not supported: register with the gateway of this domain";
        return Err(StanzaError::new(Condition::ItemNotFound).with_text(text));
    }
    let wanted = xml::read(request.payload, session.bare.domain(), &cx.shard.settings.push)?;
    let question = EnablePush {
        domain: session.domain,
        local: session.bare.local().into(),
        node: wanted.node,
        channel: wanted.channel,
        shown: wanted.shown,
        wakes: wanted.wakes,
        rooms: wanted.rooms,
        now: cx.now.unix,
        per_account_max: cx.shard.settings.push.per_account_max,
        per_room_max: ROOM_LISTENERS_MAX,
    };
    let pending = request.pending(session);
    cx.ask(question, move |answer, _, cx| {
        let answer = match answer {
            Ok(EnablePushAnswer::Enabled(_)) => Ok(Payload::empty()),
            Ok(EnablePushAnswer::TooMany) => {
                let text = "your account has as many registrations for push as it may have";
                Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
            }
            Ok(EnablePushAnswer::NotInRoom(_)) => {
                let text = "`rooms` are rooms that list your account";
                Err(StanzaError::new(Condition::ItemNotFound).with_text(text))
            }
            Ok(EnablePushAnswer::RoomFull(_)) => {
                let text = "as many apps as may want every message of one of the rooms";
                Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
            }
            Ok(EnablePushAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
    Ok(IqAnswer::Later)
}

/// XEP-0357 §6: an app does not want to be woken any more; without a node, none does.
fn disable(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    if !is_ours(request.payload, session)? {
        // Nothing of it is there.
        return Ok(IqAnswer::Empty);
    }
    let question = DisablePush {
        domain: session.domain,
        local: session.bare.local().into(),
        node: request.payload.attr("node").map(Box::from),
    };
    let pending = request.pending(session);
    cx.ask(question, move |answer, _, cx| {
        cx.reply(pending.reply(answer.map(|()| Payload::empty()).map_err(|_| store_unavailable())));
    });
    Ok(IqAnswer::Later)
}

/// Whether a request is about the gateway of the session's domain.
fn is_ours(payload: &Element, session: &BoundSession) -> Result<bool, StanzaError> {
    match payload.attr("jid") {
        None | Some("") => {
            Err(StanzaError::new(Condition::BadRequest).with_text("`jid` is the address of an app server"))
        }
        Some(jid) => {
            Ok(jid.strip_prefix("push.").is_some_and(|host| host.eq_ignore_ascii_case(session.bare.domain())))
        }
    }
}

/// The key by which push services know this server (RFC 8292): browsers subscribe with it.
fn vapid(_: &mut BoundSession, _: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    match &*cx.shard.settings.push.vapid {
        "" => Err(StanzaError::new(Condition::ItemNotFound).with_text("this server has no key")),
        key => Ok(IqAnswer::Payload(Element::new("vapid", GATEWAY).with_text(key))),
    }
}

/// When something that is about to be stored wakes its account, if it does. Where the account has a live session it is given to that: it wakes only if
/// this does not acknowledge it in time.
fn wakes(stored: Stored<'_>, is_attended: bool, cx: &Cx<'_>) -> Option<Wake> {
    let grace_ms = cx.shard.settings.push.grace_ms;
    let now = cx.now.unix.plus(if is_attended { grace_ms } else { 0 });
    match stored {
        Stored::Message(message) => {
            let from = message.from.as_ref().filter(|_| says_something(message))?;
            Some(Wake { at: now, topic: format!("m:{}", from.bare_str()).into() })
        }
        Stored::Mention(message) => {
            let room = message.from.as_ref().filter(|_| says_something(message))?;
            Some(Wake { at: now, topic: room_topic(room.bare_str()) })
        }
        Stored::InRoom(message) => says_something(message).then(|| Wake { at: now, topic: Box::default() }),
        Stored::Notification(notification) => {
            let is_request = matches!(notification.payload, Carried::Request(_));
            if notification.audience != Audience::Always || is_request || is_own(notification) {
                return None;
            }
            // At its time it is given to who is there then.
            let at = notification.send_at.map_or(now, |at| at.plus(grace_ms).max(now));
            let topic = match &notification.collapse_key {
                Some(key) => format!("k:{key}"),
                None => format!("n:{}", notification.id),
            };
            Some(Wake { at, topic: topic.into() })
        }
    }
}

/// Whether somebody is to look at a message: it has a body, or is encrypted.
fn says_something(message: &Stanza) -> bool {
    let encrypted = |ns| message.payload.find("encrypted", ns).is_some();
    message.payload.find("body", ns::CLIENT).is_some()
        || message.payload.find("encryption", "urn:xmpp:eme:0").is_some()
        || encrypted("eu.siacs.conversations.axolotl")
        || encrypted("urn:xmpp:omemo:2")
}

/// Whether a notification is what the gateway tells of registrations: nobody is woken by it.
fn is_own(notification: &Notification) -> bool {
    let own = |xml: &[u8]| xml.windows(GATEWAY.len()).take(256).any(|part| part == GATEWAY.as_bytes());
    notification.key.is_none() && matches!(&notification.payload, Carried::Xml(xml) if own(xml))
}

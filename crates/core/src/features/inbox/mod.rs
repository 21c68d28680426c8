//! The inbox of an account: its conversations, with the newest message and the number of unread ones of each (XEP-0430), and the same in the
//! words of MongooseIM.
//!
//! All of it follows from the archive: the store counts while it keeps messages, and here it is only asked.

mod change;
mod form;
mod xml;

use crate::error::{StanzaError, store_unavailable};
use crate::model::{Folder, InboxEntry};
use crate::ports::store::inbox::{InboxPage, ReadInbox};
use crate::ports::{Fault, Page};
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandle, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx, Wait};
use crate::shard::Track;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use xml::Query;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "inbox",
    about: "Lists an account's conversations, with what is unread.",
    specs: &[
        Spec {
            id: "XEP-0430",
            title: "Inbox",
            version: "0.2.0",
            coverage: "All of it, where the domain has archives: the conversation with the newest message first, pages by XEP-0059. A message is \
                       unread until its conversation is answered, or a marker `displayed` or `acknowledged` names it or a later one. \
                       Conversations are counted up to 1,000, and the unread messages of each.",
        },
        Spec {
            id: "erlang-solutions.com:xmpp:inbox:0",
            title: "Inbox of MongooseIM",
            version: "0",
            coverage: "Queries with their form, the boxes inbox, archive and bin, properties of a conversation (box, archive, mute, read), \
                       `reset` and `empty-bin`. Not there: boxes of one's own; ids of pages are numbers of messages.",
        },
    ],
    server_features: &[ns::INBOX_MIM],
    account_features: &[ns::INBOX],
    in_domain: |policy| policy.archive,
    hooks: Hooks {
        iq: &[
            iq(IqType::Get, "inbox", ns::INBOX, ask),
            iq(IqType::Get, "inbox", ns::INBOX_MIM, ask_form),
            iq(IqType::Get, "query", ns::INBOX_MIM, ask_form),
            iq(IqType::Set, "inbox", ns::INBOX_MIM, ask_as_in_mongooseim),
            iq(IqType::Set, "empty-bin", ns::INBOX_MIM, change::empty_bin),
            iq(IqType::Get, "query", ns::INBOX_MIM_CONVERSATION, change::get),
            iq(IqType::Set, "query", ns::INBOX_MIM_CONVERSATION, change::set),
            iq(IqType::Set, "reset", ns::INBOX_MIM_CONVERSATION, change::reset),
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

const fn iq(kind: IqType, name: &'static str, ns: &'static str, handle: IqHandle) -> IqHandler {
    IqHandler { kind, name, ns, at: At::Account, handle }
}

/// Conversations of a page, and how many it has where the client does not say.
const PAGE_MAX: u16 = 250;
const PAGE: u16 = 50;

/// Bytes of the messages of a page: what a client that reads slowly has waiting.
const PAGE_BYTES: usize = 128 * 1024;

/// A client asks in the words of XEP-0430.
fn ask(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let query = Query::of(request.payload, request.stanza.id.as_deref())?;
    read(session, query, xml::entry, xml::fin, cx)
}

/// A client asks in those of MongooseIM.
fn ask_as_in_mongooseim(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let query = form::query(request.payload, request.stanza.id.as_deref())?;
    read(session, query, form::entry, form::fin, cx)
}

fn ask_form(session: &mut BoundSession, _: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    Ok(IqAnswer::Payload(form::form()))
}

type ShowEntry = fn(&BoundSession, &Query, &InboxEntry, &Cx<'_>) -> Stanza;
type ShowEnd = fn(&Query, &InboxPage) -> carillon_wire::xml::Element;

/// Sends a page. The client's next request waits until it has that one.
fn read(
    session: &mut BoundSession,
    query: Query,
    entry: ShowEntry,
    end: ShowEnd,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let question = ReadInbox {
        domain: session.domain,
        local: session.bare.local().into(),
        filter: query.filter.clone(),
        is_oldest_first: query.is_oldest_first,
        start: query.start,
        page: Page { entries: query.page.max(PAGE, PAGE_MAX), bytes: PAGE_BYTES },
    };
    Ok(IqAnswer::Wait(Wait::ask(question, move |session, _, answer: Result<_, Fault>, cx| {
        let page: Option<InboxPage> = answer.map_err(|_| store_unavailable())?;
        let page = page.ok_or(StanzaError::new(Condition::ItemNotFound))?;
        for conversation in &page.entries {
            let shown = entry(session, &query, conversation, cx);
            session.send(&shown, &Track::Nothing, cx);
        }
        Ok(IqAnswer::Payload(end(&query, &page)))
    })))
}

/// Whether the session's account has an archive, without which there is no inbox.
fn has_archive(session: &BoundSession, cx: &Cx<'_>) -> Result<(), StanzaError> {
    match cx.shard.domains.numbered(session.domain).is_some_and(|domain| domain.policy.archive) {
        true => Ok(()),
        false => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}

/// The boxes of MongooseIM.
const FOLDERS: [(&str, Folder); 3] =
    [("inbox", Folder::Inbox), ("archive", Folder::Archive), ("bin", Folder::Bin)];

//! The conversations of an account, and what is unread in them (XEP-0430).

use super::messages::MessageView;
use crate::accounts::find;
use crate::app::App;
use crate::auth::{Chat, Granted, acts};
use crate::extract::{DomainQuery, JsonBody, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::{Time, now};
use axum::Json;
use axum::extract::State;
use carillon_core::model::{
    ArchiveId, ArchiveStart, Conversation, ConversationChange, Domain, Folder, InboxEntry, InboxFilter,
    Scope, UnixMs,
};
use carillon_core::ports::Page;
use carillon_core::ports::store::inbox::{ChangeConversation, ReadInbox};
use carillon_wire::jid::BareJid;

/// Bytes of the newest messages in a page: fewer conversations may be in it than were asked for.
const PAGE_BYTES: usize = 1 << 20;

/// Selects conversations of an account.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationQuery {
    /// The account's domain, where its address does not name it.
    domain: Option<String>,
    /// Only the one with this account (bare JID).
    with: Option<String>,
    /// Only those with something unread.
    #[serde(default)]
    #[param(default = false)]
    unread: bool,
    /// Only those in this folder; without it all but those in the bin.
    folder: Option<FolderName>,
    /// Whether the newest message of each is wanted, which takes scope `read_messages`.
    #[serde(default)]
    #[param(default = false)]
    messages: bool,
    /// The `next` of the page before: conversations with older messages.
    after: Option<u64>,
    /// Conversations at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// Where a client has put a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FolderName {
    /// Among those that it shows. A message that comes later brings a conversation back here.
    Inbox,
    /// Out of sight.
    Archive,
    /// Thrown away.
    Bin,
}

/// A page of an account's conversations, the one with the newest message first.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ConversationPage {
    /// The conversations.
    conversations: Vec<ConversationView>,
    /// What to give as `after` for those with older messages; none where there are none.
    next: Option<u64>,
    /// How many conversations were asked for, on all pages.
    total: u32,
    /// How many of these have something unread.
    unread_conversations: u32,
    /// Their unread messages.
    unread_messages: u64,
}

/// A conversation.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ConversationView {
    /// With whom: a bare JID.
    with: String,
    /// When its newest message was received.
    last_at: Time,
    /// How it stands.
    #[serde(flatten)]
    state: ConversationState,
    /// The newest message, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView>,
}

/// How a conversation stands.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ConversationState {
    /// Messages from the other side that the account has not seen, up to 1,000; 1 at least where it has marked the conversation as unread.
    unread: u32,
    /// The number of the newest message in the account's archive.
    last_message: u64,
    /// Where it is.
    folder: FolderName,
    /// Until when it is muted.
    #[serde(skip_serializing_if = "Option::is_none")]
    muted_until: Option<Time>,
}

/// List an account's conversations
///
/// The one with the newest message first, page by page, with what is unread. With `messages=true` the newest message of each is told, too: that needs scope
/// `read_messages`, and is logged with the key and the account. Where the domain keeps no archives, `409` with code `no-archive`.
#[utoipa::path(
    get, path = "/v1/accounts/{jid}/conversations", operation_id = "listConversations", tag = "messages",
    params(ConversationQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 200, description = "A page of conversations", body = ConversationPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<ConversationQuery>,
    Named(jid): Named<String>,
) -> Result<Json<ConversationPage>, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    if query.messages {
        key.needs(Scope::ReadMessages)?;
        tracing::info!(
            key = &*key.key.name,
            key_id = key.key.id.0,
            account = jid.as_str(),
            "conversations are read"
        );
        acts::begin(&key.key);
        acts::note_read();
    }
    let with = query.with.as_deref().map(|with| jids::account(with, &domain.name)).transpose();
    let filter = InboxFilter {
        with: with.map_err(|problem| problem.at("with"))?,
        is_unread: query.unread,
        folder: query.folder.map(Folder::from),
        ..InboxFilter::default()
    };
    let start = query.after.map_or(ArchiveStart::First, |id| ArchiveStart::After(ArchiveId(id)));
    let page = Page { entries: limit(query.limit)?, bytes: PAGE_BYTES };
    let local = jids::local(&jid);
    let asked = ReadInbox { domain: domain.id, local, filter, is_oldest_first: false, start, page };
    let page = app.ask(asked).await?.ok_or_else(|| unknown(&jid))?;
    // Where archives were kept before, their conversations are there still.
    if page.totals.conversations == 0 && !domain.policy.archive && !has_any(&app, &domain, &jid).await? {
        let detail = format!("the domain `{}` keeps no archives: its policy's `archive` is off", domain.name);
        return Err(Problem::new(Code::NoArchive, detail));
    }
    let view = |entry: &InboxEntry| ConversationView::of(entry, query.messages, now());
    Ok(Json(ConversationPage {
        conversations: page.entries.iter().map(view).collect(),
        next: page.entries.last().filter(|_| page.more).map(|entry| entry.place().0),
        total: page.totals.conversations,
        unread_conversations: page.totals.unread_conversations,
        unread_messages: page.totals.unread,
    }))
}

/// Whether an account has a conversation.
async fn has_any(app: &App, domain: &Domain, jid: &BareJid) -> Result<bool, Problem> {
    let (filter, start) = (InboxFilter::default(), ArchiveStart::First);
    let page = Page { entries: 1, bytes: PAGE_BYTES };
    let local = jids::local(jid);
    let asked = ReadInbox { domain: domain.id, local, filter, is_oldest_first: false, start, page };
    Ok(app.ask(asked).await?.is_some_and(|page| page.totals.conversations > 0))
}

/// What is to be changed of a conversation; what is not named stays as it is.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConversationPatch {
    /// Whether everything in it is read. `false` marks it as unread.
    read: Option<bool>,
    /// Where it is put, until the next message.
    folder: Option<FolderName>,
    /// Until when it is muted; a time that is over ends that.
    muted_until: Option<Time>,
}

/// Change a conversation
///
/// As a client of the account would: nobody else is told.
#[utoipa::path(
    patch, path = "/v1/accounts/{jid}/conversations/{with}", operation_id = "updateConversation", tag = "messages",
    request_body = ConversationPatch,
    params(
        DomainQuery,
        ("jid" = String, Path, description = "Its bare JID or local part"),
        ("with" = String, Path, description = "The bare JID or local part of the other side")
    ),
    responses((status = 200, description = "How it stands now", body = ConversationState), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((jid, with)): Named<(String, String)>,
    JsonBody { value: patch, .. }: JsonBody<ConversationPatch>,
) -> Result<Json<ConversationState>, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let with = jids::account(&with, &domain.name).map_err(|problem| problem.at("with"))?;
    let change = ConversationChange {
        is_read: patch.read,
        folder: patch.folder.map(Folder::from),
        muted: patch.muted_until.map(|Time(until)| until),
    };
    let asked =
        ChangeConversation { domain: domain.id, local: jids::local(&jid), with: with.clone(), change };
    let detail = || format!("`{jid}` has no conversation with `{with}`");
    let conversation =
        app.ask(asked).await?.map_err(|_| Problem::new(Code::UnknownConversation, detail()))?;
    Ok(Json(ConversationState::of(&conversation, now())))
}

fn unknown(jid: &BareJid) -> Problem {
    Problem::new(Code::UnknownAccount, format!("there is no account `{jid}`"))
}

impl From<FolderName> for Folder {
    fn from(name: FolderName) -> Folder {
        match name {
            FolderName::Inbox => Folder::Inbox,
            FolderName::Archive => Folder::Archive,
            FolderName::Bin => Folder::Bin,
        }
    }
}

impl ConversationState {
    fn of(conversation: &Conversation, now: UnixMs) -> ConversationState {
        ConversationState {
            unread: conversation.unread(),
            last_message: conversation.last.0,
            folder: match conversation.folder() {
                Folder::Inbox => FolderName::Inbox,
                Folder::Archive => FolderName::Archive,
                Folder::Bin | Folder::Nowhere => FolderName::Bin,
            },
            muted_until: Some(conversation.muted).filter(|until| *until > now).map(Time),
        }
    }
}

impl ConversationView {
    pub(crate) fn of(entry: &InboxEntry, has_message: bool, now: UnixMs) -> ConversationView {
        ConversationView {
            with: entry.peer.to_string(),
            last_at: Time(entry.message.received),
            state: ConversationState::of(&entry.conversation, now),
            message: has_message.then(|| MessageView::of(&entry.message)),
        }
    }
}

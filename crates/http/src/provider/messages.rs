//! The messages in an account's archive (XEP-0313): read by those who may, and erased.

use crate::accounts::find;
use crate::app::App;
use crate::auth::{Admin, Granted, ReadMessages, acts};
use crate::extract::{Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{ArchiveFilter, ArchiveId, ArchiveStart, ArchivedMessage};
use carillon_core::ports::Page;
use carillon_core::ports::store::archive::{ArchivePage, ArchivePageAnswer, EraseArchive};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Unit, read as read_unit};
use carillon_wire::xml::Limits;

/// Bytes of messages in a page: fewer messages may be in it than were asked for.
const PAGE_BYTES: usize = 1 << 20;

/// Selects messages of an archive.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessageQuery {
    /// The domain to act in, where the path does not name it.
    pub(super) domain: Option<String>,
    /// Only those from and to this account (bare JID), or this resource of it (full JID); in a room, those that this account sent (bare JID).
    with: Option<String>,
    /// Only those received at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Time>,
    /// Only those received at this time or earlier.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Time>,
    /// The `next` of the page before: older messages.
    before: Option<u64>,
    /// Messages at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// Names the domain of an account.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EraseQuery {
    /// The account's domain, where its address does not name it.
    domain: Option<String>,
}

/// A page of an archive, the newest message first.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MessagePage {
    /// The messages.
    messages: Vec<MessageView>,
    /// What to give as `before` for older ones; none where there are none.
    next: Option<u64>,
}

/// A message of an archive.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MessageView {
    /// Its number, which is its stanza-id (XEP-0359) for clients. Later messages have higher ones.
    id: u64,
    /// When it was received.
    received_at: Time,
    /// Who sent it: a full JID.
    from: Option<String>,
    /// Who it is for.
    to: Option<String>,
    /// Its text, if it has one that is not encrypted.
    body: Option<String>,
    /// The whole stanza.
    xml: String,
}

/// Read the messages in an account's archive
///
/// The newest first, page by page. Needs scope `read_messages`, which `admin` does not include; each such request is logged with the key and the
/// account. In a domain whose policy `archive` is off there is what was kept before.
#[utoipa::path(
    get, path = "/v1/accounts/{jid}/messages", operation_id = "listMessages", tag = "messages",
    params(MessageQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 200, description = "A page of messages", body = MessagePage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<ReadMessages>,
    State(app): State<App>,
    Params(query): Params<MessageQuery>,
    Named(jid): Named<String>,
) -> Result<Json<MessagePage>, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let (filter, start, page) = query.selection(&domain.name)?;
    tracing::info!(key = &*key.key.name, key_id = key.key.id.0, account = jid.as_str(), "messages are read");
    acts::note_read();
    let asked = ArchivePage { domain: domain.id, local: jids::local(&jid), filter, start, page };
    MessagePage::of(app.ask(asked).await?, || unknown(&jid)).map(Json)
}

/// Erase an account's archive
///
/// What was in it cannot be read any more at once; the space is freed within some minutes. The archives of those whom the account talked
/// with keep their messages.
#[utoipa::path(
    delete, path = "/v1/accounts/{jid}/messages", operation_id = "eraseMessages", tag = "messages",
    params(EraseQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 204, description = "It is empty"), schema::Problems)
)]
pub(crate) async fn erase(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<EraseQuery>,
    Named(jid): Named<String>,
) -> Result<StatusCode, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    app.ask(EraseArchive { domain: domain.id, local: jids::local(&jid) })
        .await?
        .map_err(|_| unknown(&jid))?;
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        account = jid.as_str(),
        "an archive is erased"
    );
    Ok(StatusCode::NO_CONTENT)
}

fn unknown(jid: &BareJid) -> Problem {
    Problem::new(Code::UnknownAccount, format!("there is no account `{jid}`"))
}

impl MessageQuery {
    /// What is selected: the filter, where a page begins, and its bounds. `domain`: that of `with`, where it does not name one.
    pub(super) fn selection(&self, domain: &str) -> Result<(ArchiveFilter, ArchiveStart, Page), Problem> {
        let with = self.with.as_deref().map(|with| jids::session(with, domain)).transpose();
        let filter = ArchiveFilter {
            with: with.map_err(|problem| problem.at("with"))?,
            start: self.from.map(|Time(start)| start),
            end: self.to.map(|Time(end)| end),
            before: None,
            after: None,
        };
        let start = self.before.map_or(ArchiveStart::Last, |id| ArchiveStart::Before(ArchiveId(id)));
        Ok((filter, start, Page { entries: limit(self.limit)?, bytes: PAGE_BYTES }))
    }
}

impl MessagePage {
    /// The page that the store answered with; `unknown`: whose archive it is, is not there.
    pub(super) fn of(
        answer: ArchivePageAnswer,
        unknown: impl FnOnce() -> Problem,
    ) -> Result<MessagePage, Problem> {
        match answer {
            ArchivePageAnswer::Page { messages, more, reached } => {
                let oldest = reached.or(messages.first().map(|oldest| oldest.id));
                let next = oldest.filter(|_| more).map(|id| id.0);
                Ok(MessagePage { messages: messages.iter().rev().map(MessageView::of).collect(), next })
            }
            ArchivePageAnswer::NotFound => {
                let text = "`before` is no message of this archive, or is not kept any longer: begin anew";
                Err(Problem::new(Code::InvalidValue, text))
            }
            ArchivePageAnswer::NoAccount => Err(unknown()),
        }
    }
}

impl MessageView {
    pub(crate) fn of(message: &ArchivedMessage) -> MessageView {
        let context = Context::new(Framing::Tcp, Limits::trusted());
        let stanza = match read_unit(&message.stanza, &context) {
            Ok(Unit::Stanza(stanza)) => Some(stanza),
            _ => None,
        };
        let body = stanza.as_ref().and_then(|stanza| stanza.payload.find("body", ns::CLIENT));
        MessageView {
            id: message.id.0,
            received_at: Time(message.received),
            from: stanza.as_ref().and_then(|stanza| Some(stanza.from.as_ref()?.to_string())),
            to: stanza.as_ref().and_then(|stanza| Some(stanza.to.as_ref()?.to_string())),
            body: body.map(|body| body.element().text()),
            xml: String::from_utf8_lossy(&message.stanza).into_owned(),
        }
    }
}

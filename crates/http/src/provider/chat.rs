//! Sending a message as an account.

use super::act::{Answer, act, exists};
use super::blocked;
use super::idempotency::{self, KeyDecision};
use crate::accounts::find;
use crate::app::App;
use crate::auth::{Chat, Granted};
use crate::extract::{DomainQuery, JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::text::sendable;
use crate::values::time::now;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use carillon_core::model::Domain;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, MessageType, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// A message from an account to another.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatBody {
    /// Who it is for: a bare JID, or a local part in the account's domain; a full JID for one session of it.
    to: String,
    /// Its text.
    #[schema(min_length = 1)]
    body: String,
    /// `chat` for a conversation, `normal` for a message of its own.
    #[serde(default, rename = "type")]
    kind: ChatKind,
    /// Its subject.
    subject: Option<String>,
    /// The conversation's thread (RFC 6121 §5.2.5).
    thread: Option<String>,
    /// Its id, by which markers, receipts and corrections name it; one is made where none is given.
    #[schema(min_length = 1, max_length = 255)]
    id: Option<String>,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChatKind {
    /// Part of a conversation.
    #[default]
    Chat,
    /// On its own.
    Normal,
}

/// A message that was sent.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SentMessage {
    /// Its id.
    id: String,
    /// Whether it is settled: stored, or acknowledged by its recipient's client, so that a crash cannot lose it. With `false` it was given to a client that has not
    /// acknowledged it yet; if that is lost, it is stored.
    settled: bool,
}

/// Send a message as an account
///
/// As if one of its sessions had sent it: what it blocks is not written to, its other sessions have copies (XEP-0280), it enters the archives of both sides,
/// and who is away finds it later. Answered when it is settled; with `202` when that takes long. With an `Idempotency-Key`, the same request again sends nothing a second
/// time once it was answered.
#[utoipa::path(
    post, path = "/v1/accounts/{jid}/messages", operation_id = "sendMessage", tag = "messages", request_body = ChatBody,
    params(
        DomainQuery,
        ("jid" = String, Path, description = "Its bare JID or local part"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    responses(
        (status = 200, description = "It is settled", body = SentMessage,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        (status = 202, description = "It is on its way, and not settled yet", body = SentMessage),
        schema::Problems
    )
)]
pub(crate) async fn send(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<ChatBody>,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency::header(&headers)?;
    let (domain, account) = find(&key, &app, &jid, query.domain.as_deref())?;
    check(&body, app.options.settings.payload_bytes_max)?;
    let to = jids::session(&body.to, &domain.name).map_err(|problem| problem.at("/to"))?;
    let reached = key.reach(&app, to.domain()).ok();
    exists(&app, &domain, &account).await?;
    let (sender, hash) = (key.key.id, idempotency::body_hash(&uri, &bytes));
    idempotency::to_the_end(idempotency_key.is_some(), async move {
        let reserved = match idempotency::reserve(&app, sender, idempotency_key, hash, now()).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        let id = body.id.clone().unwrap_or_else(|| format!("{:016x}", reserved.ids.random(0)));
        match deliver(&app, &account, message(&body, &to, &id)).await {
            Ok(settled) => {
                let text = serde_json::to_string(&SentMessage { id, settled });
                let text = text.map_err(|error| Problem::unexpected(&error))?;
                let status = if settled { StatusCode::OK } else { StatusCode::ACCEPTED };
                Ok(reserved.answer(status, text).await)
            }
            Err(Refusal::Problem(problem)) => Err(reserved.refuse(problem).await),
            Err(Refusal::ByThem(error)) => {
                let problem = refused(&app, &account, &to, reached.as_deref(), &error).await;
                Err(reserved.refuse(problem).await)
            }
        }
    })
    .await
    .map(IntoResponse::into_response)
}

fn check(body: &ChatBody, bytes_max: usize) -> Result<(), Problem> {
    let wrong = |at: &'static str, detail: &str| Err(Problem::new(Code::InvalidValue, detail).at(at));
    let texts = [Some(&body.body), body.subject.as_ref(), body.thread.as_ref()];
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    if body.to.is_empty() {
        return wrong("/to", "`to` is empty: give LOCAL@DOMAIN, or LOCAL in the account's domain");
    }
    if body.body.is_empty() {
        return wrong("/body", "`body` is empty");
    }
    for (member, text) in ["body", "subject", "thread"].into_iter().zip(texts) {
        sendable(text.map_or("", String::as_str), member)?;
    }
    if bytes > bytes_max {
        let detail = format!("a message has at most {bytes_max} bytes");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    check_id(body.id.as_deref())
}

/// Refuses what is no id of a message.
pub(super) fn check_id(id: Option<&str>) -> Result<(), Problem> {
    match id {
        Some(id) if id.is_empty() || id.len() > 255 => {
            Err(Problem::new(Code::InvalidValue, "`id` is 1 to 255 bytes").at("/id"))
        }
        Some(id) => sendable(id, "id"),
        None => Ok(()),
    }
}

fn message(body: &ChatBody, to: &Jid, id: &str) -> Stanza {
    let kind = match body.kind {
        ChatKind::Chat => MessageType::Chat,
        ChatKind::Normal => MessageType::Normal,
    };
    let mut message = Stanza::message(kind).with_to(to.clone()).with_id(id);
    let texts =
        [("subject", body.subject.as_ref()), ("body", Some(&body.body)), ("thread", body.thread.as_ref())];
    for (name, text) in texts {
        if let Some(text) = text {
            message.payload.push_element(&Element::new(name, ns::CLIENT).with_text(text.clone()));
        }
    }
    message
}

/// Why a message was not sent.
enum Refusal {
    /// It is answered with an error, as over XMPP.
    ByThem(StanzaError),
    /// It could not be sent.
    Problem(Problem),
}

/// Whether the message is settled.
async fn deliver(app: &App, account: &BareJid, message: Stanza) -> Result<bool, Refusal> {
    match act(app, account, message).await {
        Ok(Answer::Done | Answer::Result(_)) => Ok(true),
        Ok(Answer::Error(error)) => Err(Refusal::ByThem(error)),
        Err(problem) if problem.code() == Code::TimedOut => Ok(false),
        Err(problem) => Err(Refusal::Problem(problem)),
    }
}

/// What a sender is told whose message came back. Over XMPP an unknown account and one that blocks look the same; a key that reaches
/// `reached`, the domain of the other, may know.
async fn refused(
    app: &App,
    account: &BareJid,
    to: &Jid,
    reached: Option<&Domain>,
    error: &StanzaError,
) -> Problem {
    let other = to.bare();
    let problem = |detail: String| Problem::new(Code::Refused, detail).at("/to");
    if error.condition == Condition::NotAcceptable {
        return problem(format!("`{account}` blocks `{other}`")).because("blocked");
    }
    if error.condition == Condition::RemoteServerNotFound {
        let detail = format!(
            "the node does not serve `{}`, or the policies of the two domains (`other_domains`) keep them apart",
            other.domain()
        );
        return problem(detail);
    }
    if error.condition != Condition::ServiceUnavailable {
        let condition = error.condition.as_str();
        let text = error.text.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
        return problem(format!("`{other}` was not given it: {condition}{text}"));
    }
    let Some(domain) = reached else {
        return problem(format!("`{other}` does not exist, or blocks the sender"));
    };
    match exists(app, domain, &other).await {
        Err(unknown) if unknown.code() == Code::UnknownAccount => {
            return problem(unknown.detail().to_owned()).because("unknown-account");
        }
        Err(fault) => return fault,
        Ok(()) => {}
    }
    match blocked::list_of(app, &other).await {
        Ok(list) if list.iter().any(|entry| covers(entry, account)) => {
            problem(format!("`{other}` blocks `{account}`")).because("blocked")
        }
        Ok(_) => problem(format!("`{other}` cannot be given it now, and keeps no messages for later")),
        Err(fault) => fault,
    }
}

/// Whether an entry of a block list is about the account or its domain (XEP-0191 §2).
fn covers(entry: &str, account: &BareJid) -> bool {
    entry == account.domain() || entry == account.as_str()
}

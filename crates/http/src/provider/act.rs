//! Having an account send a stanza, as one of its sessions would.

use crate::app::App;
use crate::problem::{Code, Problem};
use carillon_core::command::{Command, Outcome};
use carillon_core::model::Domain;
use carillon_core::ports::store::accounts::Account;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, MessageType, PresenceType, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// What an account's home said to a stanza.
pub(super) enum Answer {
    /// It is done, and there is nothing to be said.
    Done,
    /// A result.
    Result(Box<Stanza>),
    /// An error.
    Error(StanzaError),
}

/// Has an account, which is there, send a stanza.
pub(super) async fn act(app: &App, account: &BareJid, stanza: Stanza) -> Result<Answer, Problem> {
    match app.command(Command::Act { account: account.clone(), stanza: Box::new(stanza) }).await? {
        Outcome::Count(_) => Ok(Answer::Done),
        Outcome::Answered(stanza) if is_error(&stanza) => Ok(Answer::Error(error(&stanza))),
        Outcome::Answered(stanza) => Ok(Answer::Result(stanza)),
        other => Err(Problem::unexpected(&other)),
    }
}

/// The same with a request about the account itself; what it is answered with. `missing` is what it means that something is not there.
pub(super) async fn ask(
    app: &App,
    account: &BareJid,
    request: Stanza,
    missing: Code,
) -> Result<Option<Element>, Problem> {
    match act(app, account, request).await? {
        Answer::Done => Ok(None),
        Answer::Result(stanza) => {
            let payload = stanza.payload.children().next().map(|child| child.element());
            Ok(payload)
        }
        Answer::Error(error) => Err(Problem::refused(&error, missing)),
    }
}

/// Refuses a request about an account that is not there.
pub(super) async fn exists(app: &App, domain: &Domain, jid: &BareJid) -> Result<(), Problem> {
    let local = crate::values::jids::local(jid);
    match app.ask(Account { domain: domain.id, local }).await? {
        Some(_) => Ok(()),
        None => Err(Problem::new(Code::UnknownAccount, format!("there is no account `{jid}`"))),
    }
}

fn is_error(stanza: &Stanza) -> bool {
    matches!(
        stanza.kind,
        Kind::Message(MessageType::Error) | Kind::Iq(IqType::Error) | Kind::Presence(PresenceType::Error)
    )
}

fn error(stanza: &Stanza) -> StanzaError {
    let error = stanza.payload.find("error", ns::CLIENT).map(|error| error.element());
    let unknown = || StanzaError::new(carillon_wire::stanza::Condition::UndefinedCondition);
    error.and_then(|error| StanzaError::parse(&error)).unwrap_or_else(unknown)
}

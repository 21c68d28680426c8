//! All that the store keeps of an account, for the person whose it is: read part by part, and sent as it is read.

mod parts;
mod record;

use crate::accounts::find;
use crate::app::App;
use crate::auth::{Granted, ReadMessages, acts};
use crate::extract::{Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use carillon_core::model::{Domain, Scope, UnixMs};
use carillon_wire::jid::BareJid;
use futures_util::stream;
use record::ExportRecord;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What is exported.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Whether the keys of its password (SCRAM) are in it, as another server needs them to let it log in.
    credentials: Option<bool>,
}

/// Export an account
///
/// `application/x-ndjson`: a line for each thing that the store keeps of the account, each with a `kind`; the last is of the kind `end`, with the number of
/// those before it. An export without it is not whole. Password keys are in it with `credentials` only; tokens and the secrets of push registrations are not in it, and neither are the contents of
/// uploaded files. It is read part by part while the account goes on: what changes meanwhile may be in it as it was before or after. Needs scopes `admin` and
/// `read_messages`, and is noted in the audit log.
#[utoipa::path(
    get, path = "/v1/admin/accounts/{jid}/export", operation_id = "exportAccount", tag = "admin",
    params(ExportQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses(
        (status = 200, description = "What is kept of it, line by line", body = ExportRecord, content_type = "application/x-ndjson"),
        schema::Problems
    )
)]
pub(crate) async fn export(
    key: Granted<ReadMessages>,
    State(app): State<App>,
    Params(query): Params<ExportQuery>,
    Named(jid): Named<String>,
) -> Result<Response, Problem> {
    key.needs(Scope::Admin)?;
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let export = Export { app, domain, jid, has_credentials: query.credentials.unwrap_or(false) };
    // Before the answer begins: whether there is such an account.
    let (account, created) = export.account().await?;
    acts::note_read();
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        account = export.jid.as_str(),
        credentials = export.has_credentials,
        "an account is exported"
    );
    // One part is read while the one before is sent.
    let (sender, lines) = mpsc::channel(1);
    tokio::spawn(export.run((account, created), Lines { sender, buffer: Vec::new(), records: 0 }));
    let body = stream::unfold(lines, |mut lines| async move {
        let chunk = lines.recv().await?;
        Some((Ok::<Bytes, Infallible>(chunk), lines))
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// An account that is exported.
struct Export {
    app: App,
    domain: Arc<Domain>,
    jid: BareJid,
    /// Whether it has the keys of its password, for another server.
    has_credentials: bool,
}

/// Why an export goes no further.
enum Stop {
    /// Whoever asked is gone.
    Gone,
    /// Something could not be read.
    Failed(Problem),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Failed(problem)
    }
}

impl Export {
    /// Sends everything, and says that it did, or why not.
    async fn run(self, account: (ExportRecord, UnixMs), mut lines: Lines) {
        let last = match self.all(account, &mut lines).await {
            Ok(()) => ExportRecord::End { records: lines.records },
            Err(Stop::Gone) => return,
            Err(Stop::Failed(problem)) => {
                tracing::warn!(account = self.jid.as_str(), error = problem.detail(), "an export failed");
                ExportRecord::Error { detail: problem.detail().to_owned() }
            }
        };
        // Whoever is gone needs no last line.
        if lines.put(&last).await.is_ok() {
            let _ = lines.flush().await;
        }
    }

    async fn all(&self, (account, created): (ExportRecord, UnixMs), lines: &mut Lines) -> Result<(), Stop> {
        lines.put(&account).await?;
        if self.has_credentials {
            self.credentials(lines).await?;
        }
        self.topics(lines).await?;
        self.record(lines).await?;
        self.private(lines).await?;
        self.conversations(lines).await?;
        self.messages(lines).await?;
        self.offline(lines).await?;
        self.rooms(lines).await?;
        self.notifications(created, lines).await?;
        self.registrations(lines).await?;
        self.endpoints(lines).await?;
        self.uploads(lines).await?;
        self.invitations(lines).await
    }

    fn missing(&self) -> Problem {
        Problem::new(Code::UnknownAccount, format!("there is no account `{}`", self.jid))
    }
}

/// Lines on their way to whoever asked, who bounds by its pace what is read.
struct Lines {
    sender: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
    records: u64,
}

/// Bytes that are sent together.
const CHUNK_BYTES: usize = 64 << 10;

impl Lines {
    async fn put(&mut self, record: &ExportRecord) -> Result<(), Stop> {
        serde_json::to_writer(&mut self.buffer, record).expect("a record is strings and numbers");
        self.buffer.push(b'\n');
        self.records += 1;
        if self.buffer.len() >= CHUNK_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        let chunk = std::mem::take(&mut self.buffer);
        self.sender.send(chunk.into()).await.map_err(|_| Stop::Gone)
    }
}

//! Accounts by the thousand: a stream of records in, progress out.

mod record;

pub(crate) use record::{RecordKeys, iterations_max};

use self::record::{Columns, Record, Secret};
use crate::accounts;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, Format, Line, LineStream, Params, content_type};
use crate::jids;
use crate::problem::{Code, Problem};
use crate::schema;
use crate::time::now;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::DomainId;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportRefused, ImportedAccount};
use carillon_wire::jid::BareJid;
use futures_util::stream::{self, StreamExt};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How far an import has come. The last line says `done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Progress {
    /// Lines read so far.
    lines: u64,
    /// Accounts written so far.
    imported: u64,
    /// Lines that failed so far.
    failed: u64,
    /// What failed since the line before this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ImportError>,
    /// Whether this is the last line.
    done: bool,
}

/// A line that was not imported.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ImportError {
    /// Its number, counted from 1.
    line: u64,
    /// The problem's code.
    code: &'static str,
    /// The problem of the line, in words.
    detail: String,
}

/// Import accounts
///
/// NDJSON, one record per line: `{"jid":…,"password":…}` or with ready SCRAM keys. Or CSV with the columns `jid` and
/// `password`: a first line with the field `jid` names them in any order; without it they are `jid,password`. An account that
/// exists already gets the new keys. For each chunk of lines, a line of progress comes back, with its errors in the order of
/// the lines. A line that fails does not affect the others.
#[utoipa::path(
    post, path = "/v1/admin/accounts/import", operation_id = "importAccounts", tag = "admin", params(DomainQuery),
    request_body(content = Record, content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "Progress, one line per chunk", body = Progress, content_type = "application/x-ndjson"),
        schema::Problems
    )
)]
pub(crate) async fn import(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let format = content_type(&headers, &[Format::Ndjson, Format::Csv])?;
    let domain = key.domain(&app, query.domain.as_deref())?.name.clone();
    let timeout = Duration::from_millis(app.options.settings.read_timeout_ms);
    let lines = LineStream::new(body, app.options.settings.batch_line_bytes_max, timeout);
    let (columns, progress) = (Columns::default(), Progress::default());
    let import = Import { app, key, domain, format, columns, lines, progress };
    let progress = stream::unfold(import, |mut import| async move {
        let line = import.step().await?;
        Some((Ok::<Bytes, Infallible>(line), import))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(progress)).into_response())
}

/// An import that goes on.
struct Import {
    app: App,
    key: Granted<Admin>,
    domain: Arc<str>,
    format: Format,
    /// The columns of a CSV file.
    columns: Columns,
    lines: LineStream,
    progress: Progress,
}

/// A record that was read, with the number of its line.
struct Entry {
    line: u64,
    domain: DomainId,
    local: Box<str>,
    secret: Secret,
}

impl Import {
    /// Imports the next lines and says how far it has come; none after it said that it is done.
    async fn step(&mut self) -> Option<Bytes> {
        if self.progress.done {
            return None;
        }
        self.progress.errors.clear();
        let entries = self.read().await;
        let accounts = self.derive(entries).await;
        for (domain, accounts) in accounts {
            self.write(domain, accounts).await;
        }
        // What was read, hashed and written failed in three rounds.
        self.progress.errors.sort_by_key(|error| error.line);
        let mut line = serde_json::to_vec(&self.progress).expect("progress is strings and numbers");
        line.push(b'\n');
        Some(line.into())
    }

    /// The next records. Notes when they were the last.
    async fn read(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for _ in 0..CHUNK_LINES {
            let Some(line) = self.lines.next().await else {
                self.progress.done = true;
                break;
            };
            let number = line.number;
            if self.format == Format::Csv
                && number == 1
                && let Some(columns) = record::columns(&line)
            {
                match columns {
                    Ok(columns) => self.columns = columns,
                    // Nothing below it can be read.
                    Err(problem) => {
                        self.fail(number, &problem);
                        self.progress.done = true;
                        break;
                    }
                }
                continue;
            }
            self.progress.lines += 1;
            match self.entry(line) {
                Ok(entry) => entries.push(entry),
                Err(problem) => self.fail(number, &problem),
            }
        }
        entries
    }

    fn entry(&self, line: Line) -> Result<Entry, Problem> {
        let number = line.number;
        let record = Record::read(&line.text?, self.format, self.columns)?;
        let jid = jids::account(&record.jid, &self.domain)?;
        let domain = self.key.reach(&self.app, jid.domain())?.id;
        Ok(Entry {
            line: number,
            domain,
            local: jids::local(&jid),
            secret: record.secret(self.app.options.core.scram_iterations)?,
        })
    }

    /// The accounts of `entries` by domain, with the lines they came from.
    async fn derive(&mut self, entries: Vec<Entry>) -> BTreeMap<DomainId, Vec<(u64, ImportedAccount)>> {
        let app = &self.app;
        let keyed = |Entry { line, domain, local, secret }: Entry| async move {
            let credentials = match secret {
                Secret::Keys(credentials) => credentials,
                Secret::Password(password) => {
                    let keys = app.derivations.derive(password, app.options.core.scram_iterations).await;
                    keys.map_err(|problem| (line, problem))?
                }
            };
            Ok((line, domain, ImportedAccount { local, credentials }))
        };
        let results: Vec<Result<_, (u64, Problem)>> =
            stream::iter(entries).map(keyed).buffered(CHUNK_LINES).collect().await;
        let mut accounts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for result in results {
            match result {
                Ok((line, domain, account)) => accounts.entry(domain).or_default().push((line, account)),
                Err((line, problem)) => self.fail(line, &problem),
            }
        }
        accounts
    }

    async fn write(&mut self, domain: DomainId, accounts: Vec<(u64, ImportedAccount)>) {
        let (lines, accounts): (Vec<u64>, Vec<ImportedAccount>) = accounts.into_iter().unzip();
        let name = self.app.domain_name(domain);
        let jid = |account: &ImportedAccount| BareJid::from_parts(Some(&account.local), &name).ok();
        let changed: Arc<[BareJid]> = accounts.iter().filter_map(jid).collect();
        let result = match self.app.ask(ImportAccounts { domain, accounts, now: now() }).await {
            Ok(Ok(())) => accounts::changed(&self.app, changed).await,
            Ok(Err(ImportRefused::DomainFull)) => Err(accounts::full()),
            Ok(Err(ImportRefused::NoDomain)) => {
                Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted"))
            }
            Err(problem) if problem.leaves_open() => {
                accounts::changed(&self.app, changed).await.and(Err(problem))
            }
            Err(problem) => Err(problem),
        };
        match result {
            Ok(()) => self.progress.imported += lines.len() as u64,
            Err(problem) => lines.into_iter().for_each(|line| self.fail(line, &problem)),
        }
    }

    fn fail(&mut self, line: u64, problem: &Problem) {
        self.progress.failed += 1;
        let error = ImportError { line, code: problem.code().as_str(), detail: problem.detail().to_owned() };
        self.progress.errors.push(error);
    }
}

/// Lines that share a commit and a line of progress: with passwords, about half a second's work.
const CHUNK_LINES: usize = 256;

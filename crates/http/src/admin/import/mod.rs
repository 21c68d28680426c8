//! Accounts by the thousand, with what belongs to them: a stream of records in, progress out.

mod parts;
mod record;

pub(crate) use record::{RecordKeys, iterations_max};

use self::parts::{Owner, Part};
use self::record::{Columns, Record, Secret};
use crate::accounts;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, Format, Line, LineStream, Params, content_type};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::now;
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
    /// Parts of accounts written so far.
    #[serde(skip_serializing_if = "is_none")]
    parts: u64,
    /// Lines that failed so far.
    failed: u64,
    /// What failed since the line before this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ImportError>,
    /// Whether this is the last line.
    done: bool,
}

fn is_none(count: &u64) -> bool {
    *count == 0
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
/// exists already gets the new keys. A record of NDJSON with a `part` instead of keys adds what belongs to an account that is there, or that a
/// line before it made: a contact, a private element, a vCard, a node, an item, a message that waits. What is there already of the same name is replaced,
/// so that the same lines may be sent again; sessions that are connected learn of it when they log in next. For each chunk of lines, a line of
/// progress comes back, with its errors in the order of the lines. A line that fails does not affect the others.
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
    let line_bytes_max = app.options.settings.batch_line_bytes_max.max(LINE_BYTES);
    let lines = LineStream::new(body, line_bytes_max, timeout);
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
struct ImportedRecord {
    line: u64,
    domain: DomainId,
    jid: BareJid,
    what: What,
}

/// What a record has.
enum What {
    /// Keys of the account.
    Secret(Secret),
    /// A part of it.
    Part(Part),
}

/// The records of a chunk: accounts come first, and what belongs to them after that.
#[derive(Default)]
struct Entries {
    accounts: Vec<(u64, DomainId, Box<str>, Secret)>,
    /// In their order, by their accounts.
    parts: BTreeMap<BareJid, (DomainId, Vec<(u64, Part)>)>,
}

impl Entries {
    fn push(&mut self, entry: ImportedRecord) {
        let ImportedRecord { line, domain, jid, what } = entry;
        match what {
            What::Secret(secret) => self.accounts.push((line, domain, jids::local(&jid), secret)),
            What::Part(part) => self.parts.entry(jid).or_insert((domain, Vec::new())).1.push((line, part)),
        }
    }
}

impl Import {
    /// Imports the next lines and says how far it has come; none after it said that it is done.
    async fn step(&mut self) -> Option<Bytes> {
        if self.progress.done {
            return None;
        }
        self.progress.errors.clear();
        let entries = self.read().await;
        let accounts = self.derive(entries.accounts).await;
        for (domain, accounts) in accounts {
            self.write(domain, accounts).await;
        }
        self.write_parts(entries.parts).await;
        // What was read, hashed and written failed in several rounds.
        self.progress.errors.sort_by_key(|error| error.line);
        let mut line = serde_json::to_vec(&self.progress).expect("progress is strings and numbers");
        line.push(b'\n');
        Some(line.into())
    }

    /// The next records. Notes when they were the last.
    async fn read(&mut self) -> Entries {
        let mut entries = Entries::default();
        let mut bytes = 0;
        for _ in 0..CHUNK_LINES {
            if bytes > CHUNK_BYTES {
                break;
            }
            let Some(line) = self.lines.next().await else {
                self.progress.done = true;
                break;
            };
            bytes += line.text.as_ref().map_or(0, Bytes::len);
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

    fn entry(&self, line: Line) -> Result<ImportedRecord, Problem> {
        let number = line.number;
        let record = Record::read(&line.text?, self.format, self.columns)?;
        let jid = jids::account(&record.jid, &self.domain)?;
        let domain = self.key.reach(&self.app, jid.domain())?.id;
        let what = match record.part()? {
            Ok(part) => What::Part(part),
            Err(record) => What::Secret(record.secret(self.app.options.core.scram_iterations)?),
        };
        Ok(ImportedRecord { line: number, domain, jid, what })
    }

    /// Accounts by domain, with the lines they came from.
    async fn derive(
        &mut self,
        entries: Vec<(u64, DomainId, Box<str>, Secret)>,
    ) -> BTreeMap<DomainId, Vec<(u64, ImportedAccount)>> {
        let app = &self.app;
        let keyed = |(line, domain, local, secret): (u64, DomainId, Box<str>, Secret)| async move {
            let credentials = match secret {
                Secret::Keys(credentials) => credentials,
                Secret::Password(password) => {
                    let keys = app.derivations().derive(password, app.options.core.scram_iterations).await;
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
            Ok(Err(ImportRefused::IsBeingRemoved)) => Err(accounts::is_being_removed()),
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

    /// Writes what belongs to accounts: of one in its order, of many at a time.
    async fn write_parts(&mut self, parts: BTreeMap<BareJid, (DomainId, Vec<(u64, Part)>)>) {
        if parts.is_empty() {
            return;
        }
        let accounts: Arc<[BareJid]> = parts.keys().cloned().collect();
        let app = &self.app;
        let written = stream::iter(parts).map(|(jid, (domain, parts))| async move {
            let owner = Owner { domain, jid };
            let mut results = Vec::with_capacity(parts.len());
            for (line, part) in parts {
                results.push((line, parts::write(app, &owner, part).await));
            }
            results
        });
        let results: Vec<Vec<(u64, Result<(), Problem>)>> =
            written.buffer_unordered(ACCOUNTS_AT_ONCE).collect().await;
        // What homes know of these accounts is of before, also where it is not known what became of a write.
        let told = accounts::changed(app, accounts).await;
        for (line, result) in results.into_iter().flatten() {
            match result.and(told.clone()) {
                Ok(()) => self.progress.parts += 1,
                Err(problem) => self.fail(line, &problem),
            }
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

/// Bytes of lines that are held at a time, but for the last of them.
const CHUNK_BYTES: usize = 4 << 20;

/// Bytes of a line at least: a vCard or an item may be as large as a stanza, and its text is longer in JSON.
const LINE_BYTES: usize = 1 << 20;

/// Accounts whose parts are written at the same time.
const ACCOUNTS_AT_ONCE: usize = 32;

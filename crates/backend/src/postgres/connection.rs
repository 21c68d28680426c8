//! A connection to PostgreSQL, for one thread: it waits for each answer, and pipelines what it is told to.

use super::error::{Error, Result};
use super::figures::Figures;
use super::options::Options;
use bytes::Bytes;
use futures_util::SinkExt;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{self, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

/// What is bound to a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Between two attempts to connect, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A connection that can be made again.
pub(super) struct Connection {
    runtime: Runtime,
    options: Arc<Options>,
    /// Names it among the server's sessions.
    name: String,
    figures: Arc<Figures>,
    session: Option<Session>,
}

/// A connection as it is now.
struct Session {
    client: Client,
    statements: RefCell<HashMap<Box<str>, Statement>>,
}

impl Connection {
    /// A connection that is not made yet; `name` is what the server's list of sessions shows.
    pub(super) fn new(
        options: Arc<Options>,
        name: String,
        figures: Arc<Figures>,
    ) -> std::io::Result<Connection> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Connection { runtime, options, name, figures, session: None })
    }

    /// Whether it is there, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.client.is_closed())
    }

    /// Whether it was there since it was given up last.
    pub(super) fn is_made(&self) -> bool {
        self.session.is_some()
    }

    /// What it counts.
    pub(super) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What the server's list of sessions calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes it, if it is not there, trying for as long as there is patience, but once only where the database is known to be away for longer.
    pub(super) fn connect(&mut self, away: Option<Instant>) -> Result<()> {
        let patience = match away {
            Some(since) if since.elapsed() >= self.options.patience => Duration::ZERO,
            _ => self.options.patience,
        };
        let until = Instant::now() + patience;
        let mut pause = PAUSE_MIN;
        while !self.is_open() {
            match self.attempt() {
                Ok(session) => {
                    self.session = Some(session);
                    self.figures.connected();
                }
                Err(e) if Instant::now() + pause >= until => return Err(e),
                Err(_) => {
                    // The thread has no other work: what it is asked waits in its bounded queue.
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(PAUSE_MAX);
                }
            }
        }
        Ok(())
    }

    /// How long to wait for a database that is away.
    pub(super) fn patience(&self) -> Duration {
        self.options.patience
    }

    /// Gives it up: what it was asked last may still be under way.
    pub(super) fn abandon(&mut self) {
        self.session = None;
    }

    fn attempt(&self) -> Result<Session> {
        let config = self.config()?;
        let tls = self.options.tls.connector()?;
        // One that is away must not use up the time of the next.
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
        let max = self.options.connect_max.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
        let made = async {
            let (client, connection) = config.connect(tls).await?;
            tokio::spawn(async move {
                if let Err(e) = connection.await {
                    tracing::debug!(error = %e, "a connection to PostgreSQL ended");
                }
            });
            client.batch_execute(SETTINGS).await?;
            Ok::<_, tokio_postgres::Error>(Session { client, statements: RefCell::default() })
        };
        self.within(max, made).map_err(|error| match self.options.tls.remedy(&error.to_string()) {
            Some(remedy) => Error::NotTrusted { error: Box::new(error), remedy },
            None => error,
        })
    }

    /// Where to, and who asks.
    fn config(&self) -> Result<Config> {
        let mut config = self.options.config.clone();
        config.application_name(&self.name).connect_timeout(self.options.connect_max);
        if let Some(file) = &self.options.password_file {
            let text = std::fs::read(file).map_err(|e| Error::PasswordFile(file.clone(), e))?;
            // Editors end a file with a line break.
            let password = text.strip_suffix(b"\n").unwrap_or(&text);
            config.password(password.strip_suffix(b"\r").unwrap_or(password));
        }
        Ok(config)
    }

    /// Runs a statement; its rows.
    pub(super) fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let session = self.session()?;
        self.within(self.options.answer_max, async {
            session.client.query(&session.prepared(sql).await?, params).await
        })
    }

    /// Runs a statement that gives one row or none.
    pub(super) fn opt(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Runs a statement that gives one row.
    pub(super) fn one(&self, sql: &str, params: Params<'_>) -> Result<Row> {
        self.opt(sql, params)?.ok_or(Error::Corrupt("a row that is always there is missing"))
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        let session = self.session()?;
        self.within(self.options.answer_max, async {
            session.client.execute(&session.prepared(sql).await?, params).await
        })
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Result<()> {
        let session = self.session()?;
        self.within(self.options.answer_max, session.client.batch_execute(sql))
    }

    /// Runs `COPY … FROM STDIN` with what is copied.
    pub(super) fn copy_in(&self, sql: &str, data: Bytes) -> Result<u64> {
        let session = self.session()?;
        self.within(self.options.answer_max, async {
            let mut sink = Box::pin(session.client.copy_in(sql).await?);
            sink.send(data).await?;
            sink.as_mut().finish().await
        })
    }

    /// Runs statements in one round trip: all are sent before the first answer is waited for. The first error, if there is one.
    pub(super) fn pipeline(&self, statements: &[(&str, Params<'_>)]) -> Result<()> {
        self.pipeline_between("", statements, "")
    }

    /// The same between texts, which may be empty.
    pub(super) fn pipeline_between(
        &self,
        first: &str,
        statements: &[(&str, Params<'_>)],
        last: &str,
    ) -> Result<()> {
        let session = self.session()?;
        self.within(self.options.answer_max, async {
            let mut prepared = Vec::with_capacity(statements.len());
            for (sql, params) in statements {
                prepared.push((session.prepared(sql).await?, *params));
            }
            let mut answers: Vec<Waiting<'_>> = Vec::with_capacity(statements.len() + 2);
            let text = |text| -> Option<Waiting<'_>> {
                (!str::is_empty(text)).then(|| Box::pin(session.client.batch_execute(text)) as Waiting<'_>)
            };
            answers.extend(text(first));
            for (statement, params) in &prepared {
                answers
                    .push(Box::pin(async move { session.client.execute(statement, params).await.map(drop) }));
            }
            answers.extend(text(last));
            in_order(answers).await
        })
    }

    fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or(Error::Away)
    }

    fn within<T>(
        &self,
        max: Duration,
        work: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.figures.asks();
        let done = self.runtime.block_on(async { tokio::time::timeout(max, work).await });
        Ok(done.map_err(|_| Error::Late(max))??)
    }
}

impl Session {
    async fn prepared(&self, sql: &str) -> std::result::Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql.into(), statement.clone());
        Ok(statement)
    }
}

/// An answer that is waited for.
type Waiting<'a> =
    std::pin::Pin<Box<dyn Future<Output = std::result::Result<(), tokio_postgres::Error>> + 'a>>;

/// Sends all requests in their order, then waits for all answers; the first error. A request is sent when it is first polled.
async fn in_order(mut answers: Vec<Waiting<'_>>) -> std::result::Result<(), tokio_postgres::Error> {
    let mut outcomes: Vec<Option<_>> = answers.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut is_ready = true;
        for (answer, outcome) in answers.iter_mut().zip(&mut outcomes) {
            if outcome.is_none() {
                match answer.as_mut().poll(cx) {
                    std::task::Poll::Ready(done) => *outcome = Some(done),
                    std::task::Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}

/// What every session has: nothing waits for ever, and what is asked is found by indexes, whatever the server believes of the sizes of tables. It
/// knows nothing of those that were empty lately.
const SETTINGS: &str = "SET client_min_messages = warning; SET idle_in_transaction_session_timeout = '10s'; \
    SET lock_timeout = '10s'; SET jit = off; SET synchronize_seqscans = off; SET bytea_output = hex; \
    SET enable_seqscan = off; SET random_page_cost = 1.1";

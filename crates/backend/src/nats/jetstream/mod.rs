//! A durable queue that is a pull consumer of a stream of JetStream.
//!
//! A message is pulled in two steps: what is there at once, and, if that is nothing, one message that is waited for. So nothing is given to
//! this client that nobody asked for. It is settled by `+ACK`, `-NAK` with a delay, or `+TERM` once its dead letter is in a stream of its own. A
//! settlement that is lost means that the message comes again, under the name that it had: its stream, when that was made, and its number.

mod dead;
mod ensure;
mod options;

pub use options::Options;

use super::{CLIENT_ENVELOPES, CONNECT_MAX, OpenError, PING_EVERY, addresses, identify, pause};
use async_nats::connection::State;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::Batch;
use async_nats::jetstream::{self, AckKind, Context, Message};
use async_nats::{Client, ConnectOptions, ServerAddr};
use carillon_core::model::UnixMs;
use carillon_core::ports::queue::{DeadMessage, Pending};
use carillon_core::ports::{Depth, Pulled, Queue, QueueFault, Receipt, Verdict};
use ensure::Ensured;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

/// How long a server may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long a message is waited for.
const WAIT: Duration = Duration::from_secs(5);
/// How often it is looked whether the connection is there while a message is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// Opens a queue. Servers that cannot be reached are tried again and again, from when it is first asked something, within a runtime of Tokio.
///
/// # Errors
/// When the options are wrong.
pub fn open(options: Options) -> Result<Arc<dyn Queue>, OpenError> {
    options.check()?;
    let servers = addresses(&options.servers)?;
    // Read now, so that a file that is missing is found out at the start.
    identify(ConnectOptions::new(), &options.auth, &options.tls)?;
    let within_ms = AtomicU64::new(options.ack_wait.as_millis() as u64);
    Ok(Arc::new(JetStream(Arc::new(Inner {
        options,
        servers,
        context: OnceCell::new(),
        ensured: tokio::sync::Mutex::default(),
        taken: Mutex::default(),
        receipts: AtomicU64::new(1),
        within_ms,
    }))))
}

/// A consumer of a stream.
struct JetStream(Arc<Inner>);

struct Inner {
    options: Options,
    servers: Vec<ServerAddr>,
    context: OnceCell<(Client, Context)>,
    ensured: tokio::sync::Mutex<Option<Arc<Ensured>>>,
    /// Deliveries that are not settled.
    taken: Mutex<HashMap<Receipt, Taken>>,
    receipts: AtomicU64,
    within_ms: AtomicU64,
}

/// A delivery: the message, and the names that it has here.
#[derive(Clone)]
struct Taken {
    message: Message,
    id: Box<str>,
    sent: UnixMs,
    attempt: u64,
}

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStream").field("stream", &self.0.options.stream).finish_non_exhaustive()
    }
}

impl Queue for JetStream {
    fn pull(&self, max: usize, bytes_max: usize) -> Pending<Vec<Pulled>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.pull(max, bytes_max).await })
    }

    fn settle(&self, receipt: Receipt, verdict: Verdict) -> Pending<()> {
        let inner = self.0.clone();
        Box::pin(async move { inner.settle(receipt, verdict).await })
    }

    fn extend(&self, receipts: Vec<Receipt>) -> Pending<()> {
        let inner = self.0.clone();
        Box::pin(async move {
            for receipt in receipts {
                let message = inner.taken().get(&receipt).map(|taken| taken.message.clone());
                if let Some(message) = message {
                    message.ack_with(AckKind::Progress).await.map_err(away)?;
                }
            }
            Ok(())
        })
    }

    fn settle_within(&self) -> Duration {
        Duration::from_millis(self.0.within_ms.load(Ordering::Relaxed))
    }

    fn depth(&self) -> Pending<Depth> {
        let inner = self.0.clone();
        Box::pin(async move { inner.ensured().await?.depth().await })
    }

    fn dead(&self, max: usize) -> Pending<Vec<DeadMessage>> {
        let inner = self.0.clone();
        Box::pin(async move { dead::list(&*inner.ensured().await?, max).await })
    }

    fn redrive(&self, max: usize) -> Pending<usize> {
        let inner = self.0.clone();
        Box::pin(async move { dead::redrive(&*inner.ensured().await?, &inner.context().await?.1, max).await })
    }

    fn flush(&self) -> Pending<()> {
        let inner = self.0.clone();
        Box::pin(async move {
            match inner.context.get() {
                Some((client, _)) => client.flush().await.map_err(away),
                None => Ok(()),
            }
        })
    }
}

impl Inner {
    async fn pull(&self, max: usize, bytes_max: usize) -> Result<Vec<Pulled>, QueueFault> {
        let ensured = self.ensured().await?;
        let pulled = self.pull_from(&ensured, max, bytes_max).await;
        if pulled.is_err() {
            // It may be another consumer from now on, or none.
            *self.ensured.lock().await = None;
        }
        pulled
    }

    async fn pull_from(
        &self,
        ensured: &Ensured,
        max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Pulled>, QueueFault> {
        let (client, _) = self.context().await?;
        connected(client)?;
        let there = self.there(client, &ensured.consumer, max, bytes_max).await?;
        let mut pulled =
            there.into_iter().map(|message| self.take(message, ensured)).collect::<Result<Vec<_>, _>>()?;
        if pulled.is_empty() {
            let waited = ensured.consumer.batch().max_messages(1).expires(WAIT).messages();
            let mut batch = answered(waited).await?;
            if let Some(message) = next(client, &mut batch, WAIT + ANSWER_MAX).await? {
                pulled.push(self.take(message, ensured)?);
            }
        }
        Ok(pulled)
    }

    /// The messages that are there now. One that is larger than all room is waited for alone, and so is a failure found.
    async fn there(
        &self,
        client: &Client,
        consumer: &PullConsumer,
        max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>, QueueFault> {
        let mut batch = answered(consumer.fetch().max_messages(max).max_bytes(bytes_max).messages()).await?;
        let mut there = Vec::new();
        while let Ok(Some(message)) = next(client, &mut batch, ANSWER_MAX).await {
            there.push(message);
        }
        Ok(there)
    }

    /// Remembers a delivery.
    fn take(&self, message: Message, ensured: &Ensured) -> Result<Pulled, QueueFault> {
        let info = message.info().map_err(away)?;
        let published = millis(info.published.unix_timestamp_nanos());
        let attempt = info.delivered.max(1) as u64;
        let made = format!("{}/{}/{}", info.stream, ensured.created_ns, info.stream_sequence);
        let headers = headers(&message);
        let header = |name: &str| headers.iter().find(|(key, _)| **key == *name).map(|(_, value)| &**value);
        // One that was a dead letter keeps its name.
        let (id, sent) = match (header(dead::ID), header(dead::SENT).and_then(|sent| sent.parse().ok())) {
            (Some(id), Some(sent)) => (id.into(), UnixMs(sent)),
            _ => (made.into_boxed_str(), published),
        };
        let receipt = Receipt(self.receipts.fetch_add(1, Ordering::Relaxed));
        let pulled = Pulled {
            receipt,
            id: id.clone(),
            sent,
            attempt,
            group: None,
            body: message.payload.clone(),
            headers,
        };
        self.taken().insert(receipt, Taken { message, id, sent, attempt });
        Ok(pulled)
    }

    async fn settle(&self, receipt: Receipt, verdict: Verdict) -> Result<(), QueueFault> {
        let Some(taken) = self.taken().remove(&receipt) else { return Ok(()) };
        let kind = match verdict {
            Verdict::Done => AckKind::Ack,
            Verdict::Later(after) => AckKind::Nak(Some(after)),
            Verdict::Dead(reason) => {
                let (client, context) = self.context().await?;
                let max = client.server_info().max_payload;
                dead::publish(context, &self.options.dead_subject, &taken, &reason, max).await?;
                AckKind::Term
            }
        };
        taken.message.ack_with(kind).await.map_err(away)
    }

    async fn context(&self) -> Result<&(Client, Context), QueueFault> {
        let connect = async {
            let options = ConnectOptions::new()
                .client_capacity(CLIENT_ENVELOPES)
                .ping_interval(PING_EVERY)
                .connection_timeout(CONNECT_MAX)
                .request_timeout(Some(ANSWER_MAX))
                .reconnect_delay_callback(pause)
                .name(format!("carillon intake {}", self.options.stream));
            let options = identify(options, &self.options.auth, &self.options.tls)
                .map_err(|e| QueueFault::Wrong(e.to_string().into()))?;
            let client =
                async_nats::connect_with_options(self.servers.clone(), options).await.map_err(away)?;
            let context = jetstream::new(client.clone());
            Ok((client, context))
        };
        self.context.get_or_try_init(|| connect).await
    }

    /// The consumer, made or checked once per connection and after each failure.
    async fn ensured(&self) -> Result<Arc<Ensured>, QueueFault> {
        let mut ensured = self.ensured.lock().await;
        if let Some(ensured) = &*ensured {
            return Ok(ensured.clone());
        }
        let (_, context) = self.context().await?;
        let new = Arc::new(ensure::ensure(context, &self.options).await?);
        self.within_ms.store(new.ack_wait().as_millis() as u64, Ordering::Relaxed);
        *ensured = Some(new.clone());
        Ok(new)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Receipt, Taken>> {
        // Nothing that can panic is done under the lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next message of a batch; none where it ends. A server that the connection was lost to does not know of the batch any more.
async fn next(client: &Client, batch: &mut Batch, within: Duration) -> Result<Option<Message>, QueueFault> {
    let until = Instant::now() + within;
    loop {
        if let Ok(message) = timeout(LOOK, batch.next()).await {
            return message.transpose().map_err(away);
        }
        connected(client)?;
        if Instant::now() >= until {
            return Err(QueueFault::Away("the server does not answer".into()));
        }
    }
}

fn connected(client: &Client) -> Result<(), QueueFault> {
    match client.connection_state() {
        State::Connected => Ok(()),
        _ => Err(QueueFault::Away("there is no connection to NATS".into())),
    }
}

/// What is answered in time.
async fn answered<T, E: fmt::Display>(answer: impl Future<Output = Result<T, E>>) -> Result<T, QueueFault> {
    match timeout(ANSWER_MAX, answer).await {
        Ok(answer) => answer.map_err(away),
        Err(_) => Err(QueueFault::Away("the server does not answer".into())),
    }
}

fn away(error: impl fmt::Display) -> QueueFault {
    QueueFault::Away(error.to_string().into())
}

/// The headers of a message, by lower-case names.
fn headers(message: &Message) -> Vec<(Box<str>, Box<str>)> {
    let all = message.headers.iter().flat_map(async_nats::HeaderMap::iter);
    let one = |(name, values): (&async_nats::HeaderName, &Vec<async_nats::HeaderValue>)| {
        let value = values.first()?.as_str().into();
        Some((name.to_string().to_ascii_lowercase().into(), value))
    };
    all.filter_map(one).collect()
}

fn millis(nanos: i128) -> UnixMs {
    UnixMs(u64::try_from(nanos / 1_000_000).unwrap_or_default())
}

//! The stream, the consumer and the stream of dead letters: made where they are missing, and checked.

use super::{Options, answered, away, millis};
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use carillon_core::ports::{Depth, QueueFault};
use futures_util::TryStreamExt;
use std::time::Duration;

/// What a queue consists of.
pub(super) struct Ensured {
    pub(super) stream: Stream,
    pub(super) consumer: PullConsumer,
    pub(super) dead: Stream,
    pub(super) dead_subject: Box<str>,
    /// When the stream was made: one that is made anew gives its numbers again.
    pub(super) created_ns: i128,
}

/// Makes or checks what a queue consists of.
pub(super) async fn ensure(context: &Context, options: &Options) -> Result<Ensured, QueueFault> {
    let name = &options.stream;
    let Some(stream) = find(context, name).await? else {
        return Err(wrong(format!(
            "there is no stream {name}: make it, such as by `nats stream add {name}`"
        )));
    };
    let consumer = consumer(&stream, options).await?;
    let dead = match find(context, &options.dead_stream).await? {
        Some(dead) => dead,
        None => {
            let config = stream::Config {
                name: options.dead_stream.to_string(),
                subjects: vec![options.dead_subject.to_string()],
                num_replicas: stream.cached_info().config.num_replicas,
                ..stream::Config::default()
            };
            let made = answered(context.create_stream(config)).await;
            let because =
                |e| wrong(format!("the stream {} of dead letters cannot be made: {e}", options.dead_stream));
            // Another node may have made it meanwhile.
            match made {
                Ok(dead) => dead,
                Err(e) => find(context, &options.dead_stream).await?.ok_or_else(|| because(e))?,
            }
        }
    };
    let created_ns = stream.cached_info().created.unix_timestamp_nanos();
    Ok(Ensured { stream, consumer, dead, dead_subject: options.dead_subject.clone(), created_ns })
}

/// The stream of this name, if there is one.
async fn find(context: &Context, name: &str) -> Result<Option<Stream>, QueueFault> {
    match tokio::time::timeout(super::ANSWER_MAX, context.get_stream(name)).await {
        Ok(Ok(stream)) => Ok(Some(stream)),
        Ok(Err(error)) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(None)
            }
            _ => Err(away(error)),
        },
        Err(_) => Err(QueueFault::Away("the server does not answer".into())),
    }
}

async fn consumer(stream: &Stream, options: &Options) -> Result<PullConsumer, QueueFault> {
    let name = &*options.consumer;
    match stream.consumer_info(name).await {
        Ok(_) => {
            let found = stream.get_consumer(name).await;
            let consumer: PullConsumer = found
                .map_err(|_| wrong(format!("the consumer {name} is none that messages are pulled from")))?;
            check(&consumer.cached_info().config, options)?;
            Ok(consumer)
        }
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
            let config = Config {
                durable_name: Some(name.to_owned()),
                deliver_policy: DeliverPolicy::All,
                ack_policy: AckPolicy::Explicit,
                ack_wait: options.ack_wait,
                max_ack_pending: options.unsettled_max.into(),
                filter_subject: options.subject.as_deref().unwrap_or_default().to_owned(),
                ..Config::default()
            };
            let made = stream.create_consumer(config).await;
            made.map_err(|e| wrong(format!("the consumer {name} cannot be made: {e}")))
        }
        Err(error) => Err(away(error)),
    }
}

/// Refuses a consumer that would lose messages, or take others.
fn check(config: &async_nats::jetstream::consumer::Config, options: &Options) -> Result<(), QueueFault> {
    let name = &options.consumer;
    if config.ack_policy != AckPolicy::Explicit {
        return Err(wrong(format!("the consumer {name} has to have the ack policy `explicit`")));
    }
    match &options.subject {
        Some(subject) if *config.filter_subject != **subject => {
            let of = &config.filter_subject;
            Err(wrong(format!(
                "the consumer {name} takes the subject {of:?}, and the settings say {subject:?}"
            )))
        }
        _ => Ok(()),
    }
}

fn wrong(why: String) -> QueueFault {
    QueueFault::Wrong(why.into())
}

impl Ensured {
    /// How long a delivery has.
    pub(super) fn ack_wait(&self) -> Duration {
        self.consumer.cached_info().config.ack_wait.max(Duration::from_secs(1))
    }

    /// Counts its messages.
    pub(super) async fn depth(&self) -> Result<Depth, QueueFault> {
        let info = answered(self.consumer.get_info()).await?;
        let mut depth = Depth {
            waiting: info.num_pending,
            unsettled: info.num_ack_pending as u64,
            oldest: None,
            dead: self.dead_letters().await?,
        };
        if depth.waiting + depth.unsettled > 0 {
            let filter = Some(&*info.config.filter_subject).filter(|subject| !subject.is_empty());
            let after = info.ack_floor.stream_sequence + 1;
            let oldest = self.stream.get_first_raw_message_by_subject(filter.unwrap_or(">"), after);
            depth.oldest =
                answered(oldest).await.ok().map(|oldest| millis(oldest.time.unix_timestamp_nanos()));
        }
        Ok(depth)
    }

    async fn dead_letters(&self) -> Result<u64, QueueFault> {
        let subjects = answered(self.dead.info_builder().subjects(&*self.dead_subject).fetch()).await?;
        let counts = answered(subjects.try_collect::<Vec<_>>()).await?;
        Ok(counts.into_iter().map(|(_, count)| count as u64).sum())
    }
}

//! The queues that messages are taken from: streams of JetStream, and queues of SQS.

use crate::config::Settings;
use crate::options::Queue;
use carillon_core::ports;
use carillon_http::IntakeQueue;
use std::sync::Arc;
#[cfg(any(feature = "aws", feature = "nats"))]
use std::time::Duration;

/// The queues that messages are taken from.
pub(crate) fn open(settings: &Settings) -> Result<Vec<IntakeQueue>, String> {
    let opened = |(name, queue): (&String, &Queue)| {
        let queue_port = (if queue.is_sqs() { open_sqs(queue) } else { open_jetstream(name, queue) })
            .map_err(|e| format!("intake.queues.{name}: {e}"))?;
        Ok(IntakeQueue {
            name: name.as_str().into(),
            queue: queue_port,
            sender: queue.sender.as_str().into(),
            domain: Some(queue.domain.as_str()).filter(|domain| !domain.is_empty()).map(Into::into),
            messages_max: queue.messages_max,
            bytes_max: queue.bytes_max,
        })
    };
    settings.queues.iter().map(opened).collect()
}

#[cfg(feature = "nats")]
fn open_jetstream(name: &str, queue: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    use carillon_backend::nats::{Auth, jetstream};
    let mut options = jetstream::Options::new("", &queue.stream, name);
    options.servers = queue.url.split(',').map(|server| server.trim().into()).collect();
    options.consumer = queue.consumer.as_str().into();
    options.subject = Some(queue.subject.as_str()).filter(|subject| !subject.is_empty()).map(Into::into);
    options.ack_wait = Duration::from_millis(queue.ack_wait_ms);
    options.unsettled_max = queue.unsettled_max;
    if let Some(file) = &queue.credentials {
        options.auth = Auth::Credentials(carillon_backend::Secret::File(file.clone()));
    }
    options.tls.authorities.clone_from(&queue.ca_file);
    for (named, to) in
        [(&queue.dead_stream, &mut options.dead_stream), (&queue.dead_subject, &mut options.dead_subject)]
    {
        if !named.is_empty() {
            *to = named.as_str().into();
        }
    }
    jetstream::open(options).map_err(|e| e.to_string())
}

#[cfg(not(feature = "nats"))]
fn open_jetstream(_: &str, _: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    Err("this binary was built without NATS: build it with `--features nats`".to_owned())
}

#[cfg(feature = "aws")]
fn open_sqs(queue: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    crate::aws::sqs::open(&queue.url, queue.ca_file.as_deref(), Duration::from_millis(queue.ack_wait_ms))
}

#[cfg(not(feature = "aws"))]
fn open_sqs(_: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    Err("this binary was built without AWS: build it with `--features aws`".to_owned())
}

//! The settings of queues: a table for each, `intake.queues.NAME`, with the same settings in each.

use super::declare::{Reload, Setting, settings};
use super::kind::{Written, bytes, count, ms, path, text};
use super::unit::{GIB, HOUR, KIB, SECOND};
use super::value::Field;
use super::{Config, Place, Problem, table};
use crate::options::Queue;

/// What the keys of all queues begin with.
pub(super) const TABLE: &str = "intake.queues";

settings! {
    /// The settings of each queue.
    QUEUE of Queue;

    "Queues that messages are taken from. These become notifications and items (docs/book/queues.md). Each queue is a table `intake.queues.NAME`, whose name has letters, digits, `-` and `_`; on the command line `--set intake.queues.NAME.url=…`. They have no variables of the environment." {
        /// Where it is. JetStream: `nats://HOST:PORT` or `tls://HOST:PORT`, with commas between servers. SQS: the URL of the
        /// queue, which has a dead-letter queue; credentials are looked for as the SDKs of AWS do. The binary has to be built with it.
        "url" = url, text(1, 4096), Restart;
        /// Name or number of the API key as which its messages are sent: what that key may do, they may do.
        "sender" = sender, text(1, 255), Restart;
        /// Domain to act in, for a key of the whole node; empty for the node's first.
        "domain" = domain, text(0, 1023), Restart;
        /// JetStream: the stream. It has to be there.
        "stream" = stream, text(0, 255), Restart;
        /// JetStream: the durable pull consumer of the stream, the same on all nodes. It is made if it is not there.
        "consumer" = consumer, text(1, 255), Restart;
        /// JetStream: the subject that the consumer takes, such as `orders.>`; empty for all of the stream.
        "subject" = subject, text(0, 255), Restart;
        /// JetStream: a file with the JWT and the nkey by which the node says who it is. A user and a password may be in the URL.
        "credentials" = credentials, path(0), Restart;
        /// A file of certificates (PEM) by which the servers are known; none for those that the system trusts.
        "ca_file" = ca_file, path(0), Restart;
        /// How long a message that was delivered may take until it is delivered again. Work that takes longer extends it. A consumer of
        /// JetStream that is there keeps its own. SQS: the visibility timeout.
        "ack_wait_ms" = ack_wait_ms, ms(2 * SECOND, HOUR), Restart;
        /// Messages that the node deals with at once.
        "messages_max" = messages_max, count(1, 100_000, "messages"), Restart;
        /// What these may have together. It is looked at before more are asked for.
        "bytes_max" = bytes_max, bytes(64 * KIB, 4 * GIB), Restart;
        /// JetStream: messages that all nodes deal with at once, for a consumer that is made (`max_ack_pending`).
        "unsettled_max" = unsettled_max, count(1, 1_000_000, "messages"), Restart;
        /// JetStream: the stream of dead letters, which is made if it is not there; empty for `carillon_dead_NAME`.
        "dead_stream" = dead_stream, text(0, 255), Restart;
        /// JetStream: the subject of dead letters; empty for `carillon.dead.NAME`.
        "dead_subject" = dead_subject, text(0, 255), Restart;
    }
}

/// Gives a setting of a queue its value.
pub(super) fn apply(
    config: &mut Config,
    queue: &str,
    member: &str,
    written: &Written,
    place: Place,
) -> Result<(), Problem> {
    config.queue_places.entry(queue.to_owned()).or_insert_with(|| place.clone());
    let settings = config.settings.queues.entry(queue.to_owned()).or_default();
    table::put(QUEUE, settings, (format!("{TABLE}.{queue}.{member}"), member), written, place)
}

/// Problems of queues whose settings do not fit together.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let problem = |(name, queue): (&String, &Queue)| {
        let (member, rule) = broken(name, queue)?;
        let place = config.queue_places.get(name)?.clone();
        Some(Problem::Rule { place, key: format!("{TABLE}.{name}{member}").into(), rule })
    };
    config.settings.queues.iter().filter_map(problem).collect()
}

/// What is wrong with a queue: of which setting, and why.
fn broken(name: &str, queue: &Queue) -> Option<(&'static str, String)> {
    if !table::is_name(name) {
        return Some(("", "the name of a queue has up to 64 letters, digits, - and _".to_owned()));
    }
    if queue.sender.is_empty() {
        return Some((
            ".sender",
            "it has to be set: the name of an API key as which messages are sent".to_owned(),
        ));
    }
    if queue.is_sqs() {
        let built = cfg!(feature = "aws");
        let rule = "this binary was built without AWS: build it with `--features aws`".to_owned();
        return (!built).then_some((".url", rule));
    }
    let is_nats = |server: &str| ["nats://", "tls://"].iter().any(|scheme| server.trim().starts_with(scheme));
    if !queue.url.split(',').all(is_nats) {
        let rule =
            "it has to be set: nats://HOST:PORT, tls://HOST:PORT, or the https:// URL of a queue of SQS";
        return Some((".url", rule.to_owned()));
    }
    if !cfg!(feature = "nats") {
        return Some((
            ".url",
            "this binary was built without NATS: build it with `--features nats`".to_owned(),
        ));
    }
    if queue.stream.is_empty() {
        return Some((".stream", "it has to be set: the stream of JetStream".to_owned()));
    }
    None
}

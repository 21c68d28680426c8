//! A durable queue of Amazon SQS, standard or FIFO, by its JSON protocol.
//!
//! A message is settled by its deletion, in batches of ten, or by another visibility timeout; a dead letter is sent to the queue's own
//! dead-letter queue, with the reason as attributes, and then deleted. What is said of a delivery that another consumer has meanwhile is
//! refused by SQS, and does no harm: the message is known when it comes again.

mod deletions;
mod letters;

use crate::aws::Aws;
use carillon_core::model::UnixMs;
use carillon_core::ports::queue::{DeadMessage, Pending};
use carillon_core::ports::{Depth, Pulled, Queue, QueueFault, Receipt, Verdict};
use deletions::Deletions;
use letters::{ID, SENT};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How long a message is waited for, in seconds: less than a request may take.
const WAIT_S: u64 = 5;
/// Messages of a request, at most.
const BATCH: usize = 10;
/// The longest visibility timeout, in seconds: of all of a delivery together.
const VISIBLE_MAX_S: u64 = 12 * 60 * 60;

/// A queue.
#[derive(Debug)]
struct Sqs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    aws: Arc<Aws>,
    url: Arc<str>,
    /// The last part of its URL.
    name: Box<str>,
    within_s: u64,
    dead_url: Mutex<Option<Arc<str>>>,
    taken: Mutex<HashMap<Receipt, Taken>>,
    receipts: AtomicU64,
    deletions: Deletions,
}

/// A delivery.
#[derive(Clone, Debug)]
struct Taken {
    handle: Box<str>,
    /// What the queue calls the message: another each time that it becomes one again.
    number: Box<str>,
    message: Pulled,
}

/// Opens the queue of this URL. Deliveries have `within` to be settled.
///
/// # Errors
/// The URL is none of a queue, or there are no credentials.
pub(crate) fn open(url: &str, ca_file: Option<&Path>, within: Duration) -> Result<Arc<dyn Queue>, String> {
    let (endpoint, name, region) = parts(url).ok_or(
        "url: it is none of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
    )?;
    let aws = Arc::new(Aws::at("sqs", region, Some(endpoint), ca_file)?);
    let url: Arc<str> = url.into();
    Ok(Arc::new(Sqs(Arc::new(Inner {
        deletions: Deletions::new(aws.clone(), url.clone()),
        aws,
        url,
        name: name.into(),
        within_s: within.as_secs().max(2),
        dead_url: Mutex::default(),
        taken: Mutex::default(),
        receipts: AtomicU64::new(1),
    }))))
}

/// The endpoint, the queue's name and the region of a queue's URL.
fn parts(url: &str) -> Option<(String, &str, Option<String>)> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"))?;
    let (host, path) = rest.split_once('/')?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty() && path.contains('/'))?;
    let region = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next()).map(str::to_owned);
    Some((format!("{scheme}://{host}"), name, region))
}

impl Queue for Sqs {
    fn pull(&self, max: usize, _bytes_max: usize) -> Pending<Vec<Pulled>> {
        self.does(move |inner| inner.pull(max))
    }

    fn settle(&self, receipt: Receipt, verdict: Verdict) -> Pending<()> {
        let inner = self.0.clone();
        let Some(taken) = inner.taken().remove(&receipt) else { return Box::pin(async { Ok(()) }) };
        match verdict {
            Verdict::Done => Box::pin(async move { inner.deletions.delete(taken.handle).await }),
            Verdict::Later(after) => {
                self.does(move |inner| inner.hide(&[&taken.handle], after.as_secs().max(1)))
            }
            Verdict::Dead(reason) => self.does(move |inner| {
                inner.bury(&taken, &reason)?;
                let entry = json!({"QueueUrl": &*inner.url, "ReceiptHandle": &*taken.handle});
                inner.call("DeleteMessage", &entry).map(drop)
            }),
        }
    }

    fn extend(&self, receipts: Vec<Receipt>) -> Pending<()> {
        self.does(move |inner| {
            let handles: Vec<Box<str>> = {
                let taken = inner.taken();
                receipts.iter().filter_map(|receipt| Some(taken.get(receipt)?.handle.clone())).collect()
            };
            let handles: Vec<&str> = handles.iter().map(|handle| &**handle).collect();
            handles.chunks(BATCH).try_for_each(|handles| inner.hide(handles, inner.within_s))
        })
    }

    fn settle_within(&self) -> Duration {
        Duration::from_secs(self.0.within_s)
    }

    fn depth(&self) -> Pending<Depth> {
        self.does(Inner::depth)
    }

    fn dead(&self, max: usize) -> Pending<Vec<DeadMessage>> {
        self.does(move |inner| inner.dead(max))
    }

    fn redrive(&self, max: usize) -> Pending<usize> {
        self.does(move |inner| inner.redrive(max))
    }

    fn flush(&self) -> Pending<()> {
        Box::pin(async { Ok(()) })
    }
}

impl Sqs {
    /// Does something that waits for AWS, on a thread of its own.
    fn does<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, QueueFault> + Send + 'static,
    ) -> Pending<T> {
        let inner = self.0.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.unwrap_or_else(|error| Err(QueueFault::Away(error.to_string().into())))
        })
    }
}

impl Inner {
    fn call(&self, operation: &str, request: &Value) -> Result<Value, QueueFault> {
        call(&self.aws, operation, request)
    }

    fn pull(&self, max: usize) -> Result<Vec<Pulled>, QueueFault> {
        // A queue without one would lose what is refused.
        self.dead_url()?;
        let request = json!({
            "QueueUrl": &*self.url,
            "MaxNumberOfMessages": max.clamp(1, BATCH),
            "WaitTimeSeconds": WAIT_S,
            "VisibilityTimeout": self.within_s,
            "AttributeNames": ["SentTimestamp", "ApproximateReceiveCount", "MessageGroupId"],
            "MessageAttributeNames": ["All"],
        });
        let answer = self.call("ReceiveMessage", &request)?;
        let messages = answer["Messages"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(messages.iter().map(|message| self.take(message)).collect())
    }

    /// Remembers a delivery.
    fn take(&self, message: &Value) -> Pulled {
        let receipt = Receipt(self.receipts.fetch_add(1, Ordering::Relaxed));
        let pulled = read(message, &self.name, receipt);
        let text = |key: &str| message[key].as_str().unwrap_or_default().into();
        let (handle, number) = (text("ReceiptHandle"), text("MessageId"));
        self.taken().insert(receipt, Taken { handle, number, message: pulled.clone() });
        pulled
    }

    /// Has deliveries made again after so many seconds.
    fn hide(&self, handles: &[&str], seconds: u64) -> Result<(), QueueFault> {
        let entries: Vec<Value> = handles
            .iter()
            .enumerate()
            .map(|(n, handle)| {
                json!({"Id": n.to_string(), "ReceiptHandle": handle, "VisibilityTimeout": seconds.min(VISIBLE_MAX_S)})
            })
            .collect();
        let request = json!({"QueueUrl": &*self.url, "Entries": entries});
        // Of one that is given to somebody else meanwhile, or has been hidden for 12 hours, the rest is not to be refused.
        self.call("ChangeMessageVisibilityBatch", &request).map(drop)
    }

    fn depth(&self) -> Result<Depth, QueueFault> {
        let count = |url: &str| {
            let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
            let request = json!({"QueueUrl": url, "AttributeNames": names});
            let answer = self.call("GetQueueAttributes", &request)?;
            let count = |name: &str| number(&answer["Attributes"][name]);
            Ok(names.map(count))
        };
        let [waiting, unsettled] = count(&self.url)?;
        let [dead, seen] = count(&self.dead_url()?)?;
        Ok(Depth { waiting, unsettled, oldest: None, dead: dead + seen })
    }

    /// The URL of the dead-letter queue that SQS itself moves messages to.
    fn dead_url(&self) -> Result<Arc<str>, QueueFault> {
        let mut known = self.dead_url.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(url) = &*known {
            return Ok(url.clone());
        }
        let request = json!({"QueueUrl": &*self.url, "AttributeNames": ["RedrivePolicy"]});
        let answer = self.call("GetQueueAttributes", &request)?;
        let policy = answer["Attributes"]["RedrivePolicy"].as_str().unwrap_or_default();
        let policy: Value = serde_json::from_str(policy).unwrap_or_default();
        let arn: Vec<&str> = policy["deadLetterTargetArn"].as_str().unwrap_or_default().split(':').collect();
        let [.., owner, name] = arn.as_slice() else {
            let why = format!("the queue {} has no dead-letter queue: give it a RedrivePolicy", self.name);
            return Err(QueueFault::Wrong(why.into()));
        };
        let request = json!({"QueueName": name, "QueueOwnerAWSAccountId": owner});
        let answer = self.call("GetQueueUrl", &request)?;
        let url: Arc<str> = answer["QueueUrl"].as_str().unwrap_or_default().into();
        *known = Some(url.clone());
        Ok(url)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Receipt, Taken>> {
        // Nothing that can panic is done under the lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls an operation.
fn call(aws: &Aws, operation: &str, request: &Value) -> Result<Value, QueueFault> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    aws.call(&format!("AmazonSQS.{operation}"), request, now).map_err(|why| {
        let is_wrong = ["NonExistentQueue", "QueueDoesNotExist", "AccessDenied", "InvalidClientTokenId"];
        match is_wrong.iter().any(|word| why.contains(word)) {
            true => QueueFault::Wrong(why.into()),
            false => QueueFault::Away(why.into()),
        }
    })
}

/// A message as SQS gives it.
fn read(message: &Value, queue: &str, receipt: Receipt) -> Pulled {
    let attributes = message["MessageAttributes"].as_object().into_iter().flatten();
    let header = |(name, value): (&String, &Value)| {
        Some((name.to_ascii_lowercase().into(), value["StringValue"].as_str()?.into()))
    };
    let mut pulled = Pulled {
        receipt,
        id: format!("{queue}/{}", message["MessageId"].as_str().unwrap_or_default()).into(),
        sent: UnixMs(number(&message["Attributes"]["SentTimestamp"])),
        attempt: number(&message["Attributes"]["ApproximateReceiveCount"]).max(1),
        group: message["Attributes"]["MessageGroupId"].as_str().map(Into::into),
        headers: attributes.filter_map(header).collect(),
        body: message["Body"].as_str().unwrap_or_default().to_owned().into(),
    };
    // One that was a dead letter keeps its name.
    if let (Some(id), Some(sent)) =
        (pulled.header(ID), pulled.header(SENT).and_then(|sent| sent.parse().ok()))
    {
        (pulled.id, pulled.sent) = (id.into(), UnixMs(sent));
    }
    pulled
}

fn number(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_known_by_its_url() {
        let of_aws = parts("https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo");
        let endpoint = "https://sqs.eu-west-1.amazonaws.com".to_owned();
        assert_eq!(of_aws, Some((endpoint, "orders.fifo", Some("eu-west-1".to_owned()))));
        let other = parts("http://127.0.0.1:5000/1/orders");
        assert_eq!(other, Some(("http://127.0.0.1:5000".to_owned(), "orders", None)));
        assert!(
            ["", "https://sqs", "https://host/", "https://host/orders", "ftp://host/1/orders"]
                .into_iter()
                .all(|url| parts(url).is_none())
        );
    }

    #[test]
    fn a_message_has_attributes_as_headers_and_keeps_its_name() {
        let mut message = json!({
            "MessageId": "m1", "ReceiptHandle": "h", "Body": "{}",
            "Attributes": {"SentTimestamp": "1700000000123", "ApproximateReceiveCount": "2", "MessageGroupId": "g"},
            "MessageAttributes": {"Content-Type": {"StringValue": "application/json", "DataType": "String"}},
        });
        let pulled = read(&message, "orders", Receipt(7));
        assert_eq!((&*pulled.id, pulled.sent.0, pulled.attempt), ("orders/m1", 1_700_000_000_123, 2));
        assert_eq!(
            (pulled.group.as_deref(), pulled.header("content-type")),
            (Some("g"), Some("application/json"))
        );
        message["MessageAttributes"][ID] = json!({"StringValue": "orders/m0", "DataType": "String"});
        message["MessageAttributes"][SENT] = json!({"StringValue": "5", "DataType": "String"});
        let again = read(&message, "orders", Receipt(8));
        assert_eq!((&*again.id, again.sent.0), ("orders/m0", 5));
    }
}

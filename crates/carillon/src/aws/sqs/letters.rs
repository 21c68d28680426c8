//! Dead letters: messages of the dead-letter queue, with attributes that say why they are there and which message they were.

use super::{BATCH, Inner, Taken, number, read};
use carillon_core::model::UnixMs;
use carillon_core::ports::queue::DeadMessage;
use carillon_core::ports::{Pulled, QueueFault, Reason, Receipt};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::SystemTime;

/// Attributes of a dead letter, and of a message that was one: its own name, and when it was sent first.
pub(super) const ID: &str = "carillon-message-id";
pub(super) const SENT: &str = "carillon-message-sent";
/// Attributes of a dead letter alone.
const REASON: &str = "carillon-reason";
const DETAIL: &str = "carillon-detail";
const DIED: &str = "carillon-died";
/// A message has ten attributes, five of which are ours.
const OWN_MAX: usize = 5;
/// How long a dead letter that was looked at is not given to others, in seconds; and while it is sent again.
const LOOK_S: u64 = 3;
const MOVE_S: u64 = 60;
const DETAIL_MAX: usize = 1024;

impl Inner {
    /// Has a message kept as a dead letter.
    pub(super) fn bury(&self, taken: &Taken, reason: &Reason) -> Result<(), QueueFault> {
        let message = &taken.message;
        let mut attributes = passed_on(message);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let died = now.as_millis().to_string();
        let own =
            [(ID, &*message.id), (REASON, &*reason.code), (DETAIL, &*cut(&reason.detail)), (DIED, &*died)];
        attributes.extend(own.map(|(name, value)| (name.to_owned(), text(value))));
        attributes.insert(SENT.to_owned(), text(&message.sent.0.to_string()));
        let dead = self.dead_url()?;
        self.send(&dead, message, &attributes, &format!("dead {}", taken.number))
    }

    /// Puts a message into a queue.
    fn send(
        &self,
        url: &str,
        message: &Pulled,
        attributes: &Map<String, Value>,
        once: &str,
    ) -> Result<(), QueueFault> {
        let mut request = json!({
            "QueueUrl": url,
            "MessageBody": String::from_utf8_lossy(&message.body),
            "MessageAttributes": attributes,
        });
        if let Some(group) = message.group.as_deref().filter(|_| url.ends_with(".fifo")) {
            request["MessageGroupId"] = group.into();
            request["MessageDeduplicationId"] = deduplication(once).into();
        }
        self.call("SendMessage", &request).map(drop)
    }

    fn look(&self, max: usize, hidden_s: u64) -> Result<Vec<Value>, QueueFault> {
        let request = json!({
            "QueueUrl": &*self.dead_url()?,
            "MaxNumberOfMessages": max.clamp(1, BATCH),
            "WaitTimeSeconds": 0,
            "VisibilityTimeout": hidden_s,
            "AttributeNames": ["SentTimestamp", "ApproximateReceiveCount", "MessageGroupId"],
            "MessageAttributeNames": ["All"],
        });
        let answer = self.call("ReceiveMessage", &request)?;
        Ok(answer["Messages"].as_array().cloned().unwrap_or_default())
    }

    /// Some dead letters.
    pub(super) fn dead(&self, max: usize) -> Result<Vec<DeadMessage>, QueueFault> {
        let (mut letters, mut seen) = (Vec::new(), HashSet::new());
        while letters.len() < max {
            let found = self.look(max - letters.len(), LOOK_S)?;
            let before = letters.len();
            for letter in &found {
                if seen.insert(letter["MessageId"].as_str().unwrap_or_default().to_owned()) {
                    letters.push(self.shown(letter));
                }
            }
            if letters.len() == before {
                break;
            }
        }
        letters.sort_by_key(|letter| letter.died);
        Ok(letters)
    }

    fn shown(&self, letter: &Value) -> DeadMessage {
        let message = read(letter, &self.name, Receipt(0));
        let reason = message.header(REASON).map(|code| Reason {
            code: code.into(),
            detail: message.header(DETAIL).unwrap_or_default().into(),
        });
        let died = message.header(DIED).and_then(|died| died.parse().ok()).map(UnixMs);
        DeadMessage {
            letter: letter["MessageId"].as_str().unwrap_or_default().into(),
            sent: Some(message.sent),
            died: died.unwrap_or(UnixMs(number(&letter["Attributes"]["SentTimestamp"]))),
            reason,
            id: message.id,
            body: message.body,
        }
    }

    /// Puts dead letters into the queue again.
    pub(super) fn redrive(&self, max: usize) -> Result<usize, QueueFault> {
        let dead = self.dead_url()?;
        let mut redriven = 0;
        while redriven < max {
            let found = self.look(max - redriven, MOVE_S)?;
            if found.is_empty() {
                break;
            }
            for letter in &found {
                let message = read(letter, &self.name, Receipt(0));
                let mut attributes = passed_on(&message);
                attributes.insert(ID.to_owned(), text(&message.id));
                attributes.insert(SENT.to_owned(), text(&message.sent.0.to_string()));
                let once = format!("redriven {}", letter["MessageId"].as_str().unwrap_or_default());
                self.send(&self.url, &message, &attributes, &once)?;
                self.call(
                    "DeleteMessage",
                    &json!({"QueueUrl": &*dead, "ReceiptHandle": letter["ReceiptHandle"]}),
                )?;
                redriven += 1;
            }
        }
        Ok(redriven)
    }
}

/// The attributes that are the message's own.
fn passed_on(message: &Pulled) -> Map<String, Value> {
    let own =
        message.headers.iter().filter(|(name, value)| !name.starts_with("carillon-") && !value.is_empty());
    own.take(10 - OWN_MAX).map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// An attribute.
fn text(value: &str) -> Value {
    json!({"DataType": "String", "StringValue": if value.is_empty() { "-" } else { value }})
}

fn cut(detail: &str) -> String {
    detail.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL_MAX).collect()
}

/// As SQS takes it: up to 128 letters, digits and punctuation.
fn deduplication(once: &str) -> String {
    let allowed = |c: char| if c.is_ascii_graphic() { c } else { '-' };
    let text: String = once.chars().map(allowed).collect();
    text[text.len().saturating_sub(128)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_has_a_name_that_sqs_takes() {
        assert_eq!(deduplication("dead orders/é 1"), "dead-orders/--1");
        assert_eq!(deduplication(&"x".repeat(200)).len(), 128);
    }
}

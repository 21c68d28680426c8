//! Deletions of messages, ten in a request.

use super::{BATCH, call};
use crate::aws::Aws;
use carillon_core::ports::QueueFault;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a deletion waits for others.
const GATHER: Duration = Duration::from_millis(10);

/// What is told whoever waits for a deletion.
type Told = oneshot::Sender<Result<(), QueueFault>>;

/// Deletions that wait for their request.
#[derive(Debug)]
pub(super) struct Deletions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    aws: Arc<Aws>,
    url: Arc<str>,
    waiting: Mutex<Vec<(Box<str>, Told)>>,
}

impl Deletions {
    pub(super) fn new(aws: Arc<Aws>, url: Arc<str>) -> Deletions {
        Deletions(Arc::new(Shared { aws, url, waiting: Mutex::default() }))
    }

    /// Deletes a message, by the handle of a delivery.
    pub(super) async fn delete(&self, handle: Box<str>) -> Result<(), QueueFault> {
        let (told, answer) = oneshot::channel();
        let (full, is_first) = {
            let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push((handle, told));
            let full = (waiting.len() >= BATCH).then(|| std::mem::take(&mut *waiting));
            (full, waiting.len() == 1)
        };
        if let Some(full) = full {
            self.0.clone().send(full);
        } else if is_first {
            let shared = self.0.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GATHER).await;
                let waiting =
                    std::mem::take(&mut *shared.waiting.lock().unwrap_or_else(PoisonError::into_inner));
                if !waiting.is_empty() {
                    shared.send(waiting);
                }
            });
        }
        answer.await.unwrap_or_else(|_| Err(QueueFault::Away("the deletion was given up".into())))
    }
}

impl Shared {
    /// Sends a request.
    fn send(self: Arc<Shared>, batch: Vec<(Box<str>, Told)>) {
        tokio::task::spawn_blocking(move || {
            let entry = |(n, (handle, _)): (usize, &(Box<str>, Told))| json!({"Id": n.to_string(), "ReceiptHandle": &**handle});
            let entries: Vec<Value> = batch.iter().enumerate().map(entry).collect();
            let request = json!({"QueueUrl": &*self.url, "Entries": entries});
            let answer = call(&self.aws, "DeleteMessageBatch", &request);
            for (n, (_, told)) in batch.into_iter().enumerate() {
                let result = match &answer {
                    Ok(answer) => of_entry(answer, n),
                    Err(fault) => Err(fault.clone()),
                };
                // Whoever waited may have gone.
                let _ = told.send(result);
            }
        });
    }
}

/// What an answer says of its `n`th entry.
fn of_entry(answer: &Value, n: usize) -> Result<(), QueueFault> {
    let id = n.to_string();
    let failed = answer["Failed"].as_array().into_iter().flatten().find(|entry| entry["Id"] == *id);
    match failed {
        None => Ok(()),
        Some(entry) => {
            let why = entry["Message"].as_str().or(entry["Code"].as_str()).unwrap_or("no reason given");
            Err(QueueFault::Away(format!("a message is not deleted: {why}").into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_has_its_own_answer() {
        let answer =
            json!({"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "ReceiptHandleIsInvalid"}]});
        assert_eq!(of_entry(&answer, 0), Ok(()));
        assert!(
            of_entry(&answer, 1).is_err_and(|fault| fault.to_string().contains("ReceiptHandleIsInvalid"))
        );
    }
}

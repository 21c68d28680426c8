//! As whom the messages of a queue are sent: an API key, found by its name.

use crate::app::App;
use carillon_core::model::ApiKey;
use carillon_core::ports::store::keys::Keys;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a key is believed without asking again, and how long it is while the store cannot be asked.
const KEPT: Duration = Duration::from_secs(5);
const KEPT_AWAY: Duration = Duration::from_secs(600);

/// The key of a queue, as it was read last.
#[derive(Default)]
pub(super) struct Sender(Mutex<Option<(ApiKey, Instant)>>);

/// Why there is no key to send as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoSender {
    /// The store does not answer.
    Unread(String),
    /// No key, or more than one, has the name.
    Wrong(String),
}

impl Sender {
    /// The key of this name.
    pub(super) async fn find(&self, app: &App, name: &str) -> Result<ApiKey, NoSender> {
        let seen = self.lock().clone();
        if let Some((key, read)) = &seen
            && read.elapsed() < KEPT
        {
            return Ok(key.clone());
        }
        match app.ask(Keys { domain: None }).await {
            Ok(keys) => {
                let key = named(keys, name);
                *self.lock() = key.as_ref().ok().map(|key| (key.clone(), Instant::now()));
                key
            }
            Err(problem) => match seen {
                Some((key, read)) if read.elapsed() < KEPT_AWAY => Ok(key),
                _ => Err(NoSender::Unread(problem.detail().to_owned())),
            },
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(ApiKey, Instant)>> {
        // A copy of a key is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of this name, or of this number.
fn named(keys: Vec<ApiKey>, name: &str) -> Result<ApiKey, NoSender> {
    let mut named = keys.into_iter().filter(|key| *key.name == *name || key.id.0.to_string() == *name);
    match (named.next(), named.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err(NoSender::Wrong(format!(
            "there is no API key called {name}: make one with `carillon key create {name} --scope send`, or change `sender`"
        ))),
        (Some(_), Some(_)) => {
            Err(NoSender::Wrong(format!("several API keys are called {name}: give its number as `sender`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{KeyId, Scope, Scopes, UnixMs};

    #[test]
    fn a_sender_is_one_key() {
        let key = |id, name: &str| {
            let scopes = Scopes::of(&[Scope::Send]);
            ApiKey {
                id: KeyId(id),
                name: name.into(),
                domain: None,
                scopes,
                created: UnixMs(0),
                expires: None,
                networks: Box::default(),
                certificates: Box::default(),
                used: None,
            }
        };
        let keys = || vec![key(1, "orders"), key(2, "twice"), key(3, "twice")];
        assert_eq!(named(keys(), "orders").unwrap().id, KeyId(1));
        assert_eq!(named(keys(), "3").unwrap().id, KeyId(3));
        assert!(matches!(named(keys(), "twice"), Err(NoSender::Wrong(why)) if why.contains("several")));
        assert!(matches!(named(keys(), "none"), Err(NoSender::Wrong(why)) if why.contains("no API key")));
    }
}

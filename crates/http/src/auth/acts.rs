//! The log of administrative acts: what is done by keys with scope `admin`, or refused to others, and who reads messages.

use crate::app::App;
use crate::problem::Code;
use crate::request_id;
use crate::values::time::now;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use carillon_core::model::{Act, ApiKey, KeyId, UnixMs};
use carillon_core::ports::store::acts::NoteAct;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) Option<IpAddr>);

/// What is known of an act before it is answered.
#[derive(Debug)]
struct Begun {
    key: ApiKey,
    /// Whether it is noted although it changes nothing.
    is_noted: bool,
    /// What was done, where that is not the request itself.
    command: Option<Command>,
}

/// A command of a program of the operator's.
#[derive(Debug)]
pub(crate) struct Command {
    /// The command.
    pub(crate) text: String,
    /// Why.
    pub(crate) reason: Option<String>,
    /// What became of it.
    pub(crate) outcome: &'static str,
}

tokio::task_local! {
    static ACT: RefCell<Option<Begun>>;
}

/// When a refused act of each key was noted last: a key that may do nothing does not fill the log.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<HashMap<KeyId, Instant>>);

impl App {
    /// Which keys were refused an act lately.
    fn refusals(&self) -> &Refusals {
        self.part()
    }
}

impl Refusals {
    /// Whether another is noted now: one per second and key is.
    fn is_noted(&self, key: KeyId, now: Instant) -> bool {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < REFUSED_EVERY;
        if noted.get(&key).is_some_and(is_recent) {
            return false;
        }
        noted.retain(|_, at| is_recent(at));
        noted.insert(key, now);
        true
    }
}

const REFUSED_EVERY: Duration = Duration::from_secs(1);

/// The longest text of what was asked for that is noted.
const WHAT_BYTES_MAX: usize = 1024;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The request that is being answered is an act by this key, if it changes something.
pub(crate) fn begin(key: &ApiKey) {
    let begun = Begun { key: key.clone(), is_noted: false, command: None };
    // What is done outside of a request, as for a form, is done by nobody of the API.
    let _ = ACT.try_with(|act| act.replace(Some(begun)));
}

/// It is noted, also where it changes nothing.
pub(crate) fn note_read() {
    with(|begun| begun.is_noted = true);
}

/// It is no act: what a front gives to its cells comes with a key of scope `admin`, and is what senders send.
pub(crate) fn forget() {
    let _ = ACT.try_with(RefCell::take);
}

/// What is noted is this command.
pub(crate) fn note_command(command: Command) {
    with(|begun| begun.command = Some(command));
}

fn with(change: impl FnOnce(&mut Begun)) {
    let _ = ACT.try_with(|act| act.borrow_mut().as_mut().map(change));
}

/// Notes an act before whoever asked for it is answered. What cannot be noted is in the node's log.
pub(crate) async fn note(State(app): State<App>, request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let peer = request.extensions().get::<Peer>().and_then(|peer| peer.0);
    let answering = async {
        let response = next.run(request).await;
        (response, ACT.with(RefCell::take))
    };
    let (response, begun) = ACT.scope(RefCell::new(None), answering).await;
    let Some(begun) = begun.filter(|begun| begun.is_noted || !method.is_safe()) else { return response };
    let is_refused = matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
    if is_refused && !app.refusals().is_noted(begun.key.id, Instant::now()) {
        return response;
    }
    let act = act(begun, &method, uri.path(), peer, &response);
    let days = app.options.settings.audit_days;
    let keep_since = UnixMs(act.at.0.saturating_sub(u64::from(days) * DAY_MS));
    if let Err(problem) = app.ask(NoteAct { act: act.clone(), keep_since }).await {
        tracing::error!(
            key_id = act.key.0,
            what = &*act.what,
            error = problem.detail(),
            "an act was not noted"
        );
    }
    response
}

fn act(begun: Begun, method: &Method, path: &str, peer: Option<IpAddr>, response: &Response) -> Act {
    let Begun { key, command, .. } = begun;
    let status = response.status().as_u16();
    let outcome = match response.extensions().get::<Code>() {
        Some(code) => format!("{status} {}", code.as_str()),
        None => status.to_string(),
    };
    let (mut what, reason, outcome) = match command {
        Some(command) => (command.text, command.reason, command.outcome.to_owned()),
        None => (format!("{method} {path}"), None, outcome),
    };
    what.truncate(what.floor_char_boundary(WHAT_BYTES_MAX));
    Act {
        at: now(),
        key: key.id,
        key_name: key.name,
        domain: key.domain,
        address: peer.map(|peer| peer.to_string().into()),
        what: what.into(),
        reason: reason.map(Into::into),
        outcome: outcome.into(),
        request: request_id::current().as_deref().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_key_is_refused_one_per_second_is_noted() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let noted = |key, after| refusals.is_noted(KeyId(key), now + after);
        assert!(noted(1, Duration::ZERO) && noted(2, Duration::ZERO));
        assert!(!noted(1, Duration::from_millis(999)));
        assert!(noted(1, REFUSED_EVERY));
        assert_eq!(refusals.0.lock().unwrap().len(), 1, "what is over is forgotten");
    }
}

//! What senders of Web Push push to endpoints.

use super::{SECRET, Script, same_state, serde_word};
use carillon_core::command::{Command, Outcome};
use carillon_core::model::*;
use carillon_core::ports::store::endpoints::FindEndpoint;

impl Script {
    /// `push URL TEXT [ttl=SECONDS] [priority=…] [topic=…] [as NAME] is STATE`, or `is gone`: somebody pushes to an endpoint.
    pub(super) fn push(&mut self, url: &str, text: &str, rest: &[&str]) -> Result<(), String> {
        let at = rest.iter().position(|w| *w == "is").ok_or("… is STATE")?;
        let (options, state) = (&rest[..at], rest[at + 1..].join(" "));
        let option = |key: &str| options.iter().find_map(|o| o.strip_prefix(key)?.strip_prefix('='));
        let url = url
            .strip_prefix('{')
            .and_then(|name| self.bound.get(name.strip_suffix('}')?))
            .map_or(url, |url| url);
        let token = url.strip_prefix("https://push.example/push/").ok_or("not the URL of an endpoint")?;
        let (domain, id) =
            EndpointKey::of(&SECRET).read_endpoint(token).ok_or("not a token of an endpoint")?;
        let Some(endpoint) = self.world.ask(FindEndpoint { domain, id }) else {
            return if state == "gone" { Ok(()) } else { Err("it is gone".into()) };
        };
        let now = self.world.now();
        let message = PushedMessage {
            body: text.as_bytes(),
            ttl_ms: option("ttl").map_or(0, |s| s.parse::<u64>().expect("seconds") * 1000),
            priority: option("priority").map_or(Ok(Priority::Normal), serde_word)?,
            topic: option("topic"),
        };
        self.notified += 1;
        let id = NotificationId::new(now, bucket(endpoint.account.as_str()), self.notified);
        if let Some(i) = options.iter().position(|o| *o == "as") {
            self.bound.insert((*options.get(i + 1).ok_or("as NAME")?).to_owned(), id.to_string());
        }
        let notification = endpoint.notification(id, &message, now);
        match self.world.command(endpoint.account.as_str(), Command::Notify(notification.into())) {
            Outcome::Notified(trace) => same_state(&trace, &state),
            other => Err(format!("{other:?}")),
        }
    }
}

//! What `carillon serve` prints once it runs: where it listens, where the key is, and what to type next.

use crate::config::{Config, Origin, Place, Setting, Settings};
use crate::files::{AdminKey, Ready};
use crate::process::telemetry::LogFormat;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// What is said of a node that was just started.
pub(super) struct Welcome<'a> {
    /// Its settings.
    pub(super) config: &'a Config,
    /// Its ports.
    pub(super) ready: Ready,
    /// Where its HTTP side can be reached from this machine.
    pub(super) http: SocketAddr,
    /// Whether its data folder is new: there are no accounts yet.
    pub(super) is_new: bool,
}

impl Welcome<'_> {
    /// Prints it, unless the log is for programs: then a line of it says as much.
    pub(super) fn print(&self) {
        if self.config.settings.log.format == LogFormat::Json {
            let console = format!("http://{}/console", self.http);
            let admin_key = AdminKey::path(&self.config.settings.node.data_dir).display().to_string();
            tracing::info!(console, admin_key, "ready");
            return;
        }
        // Whoever closed the pipe does not want to know, and the node runs all the same.
        let _ = std::io::Write::write_all(&mut std::io::stdout(), self.text().as_bytes());
    }

    fn text(&self) -> String {
        let settings = &self.config.settings;
        let data_dir = settings.node.data_dir.display();
        let mut out = format!(
            "Carillon {} is ready: domain {}, data in {data_dir}\n\n",
            env!("CARGO_PKG_VERSION"),
            settings.node.domain
        );
        for (what, place) in self.listeners() {
            let _ = writeln!(out, "  {what:<22}{place}");
        }
        let http = format!("http://{}", self.http);
        let key = AdminKey::path(&settings.node.data_dir);
        let rest = [
            ("API documentation", format!("{http}/docs")),
            ("Console", format!("{http}/console  (sign in with the admin key)")),
            ("Admin key", key.display().to_string()),
            ("Certificate", certificate(settings)),
        ];
        for (what, place) in rest {
            let _ = writeln!(out, "  {what:<22}{place}");
        }
        out.push_str(&self.next());
        out
    }

    /// Each listener with what it speaks.
    fn listeners(&self) -> Vec<(&'static str, String)> {
        let settings = &self.config.settings;
        let clients = settings.server.addresses.as_slice();
        let http = settings.http_addresses();
        let websocket = if settings.server.websocket.tls { "wss" } else { "ws" };
        let path = &settings.server.websocket.path;
        let at = |addresses: &[IpAddr], port: u16, before: &str, after: &str| {
            let all = addresses.iter().map(|ip| format!("{before}{}{after}", SocketAddr::new(*ip, port)));
            all.collect::<Vec<_>>().join(", ")
        };
        let light = if settings.server.light.tls { "Light protocol, TLS" } else { "Light protocol" };
        let listeners = [
            ("XMPP, STARTTLS", self.ready.c2s.map(|port| at(clients, port, "", ""))),
            ("XMPP, direct TLS", self.ready.c2s_tls.map(|port| at(clients, port, "", ""))),
            (
                "XMPP, WebSocket",
                self.ready.websocket.map(|port| at(clients, port, &format!("{websocket}://"), path)),
            ),
            (light, self.ready.light.map(|port| at(clients, port, "", ""))),
            ("HTTP API", self.ready.http.map(|port| at(http, port, "http://", ""))),
            (
                "HTTP API, TLS",
                self.ready.https.map(|port| at(settings.https_addresses(), port, "https://", "")),
            ),
        ];
        let health = self.ready.health.map(|port| at(&settings.node.health_addresses, port, "http://", ""));
        let listeners = listeners.into_iter().chain([("Health and metrics", health)]);
        listeners.filter_map(|(what, place)| Some((what, place?))).collect()
    }

    /// The next commands to type.
    fn next(&self) -> String {
        let folder = self.folder_option();
        if !self.is_new {
            return format!("\nFigures of the node: carillon status{folder}\n\n");
        }
        let account = format!("alice@{}", self.config.settings.node.domain);
        format!(
            "\nNext, in another terminal:\n\n  carillon account create {account} --password secret{folder}\n  \
             carillon connect {account} --password secret{folder}\n\n"
        )
    }

    /// The option by which commands find this node; nothing where they find it without.
    fn folder_option(&self) -> String {
        let setting = Setting::named("data_dir").expect("a setting of this program");
        match self.config.origin(setting) {
            Origin::Default | Origin::Profile | Origin::Set(Place::Environment(_)) => String::new(),
            Origin::Set(_) => format!(" --data-dir {}", quoted(&self.config.settings.node.data_dir)),
        }
    }
}

fn certificate(settings: &Settings) -> String {
    match &settings.node.certificate {
        Some(file) => file.display().to_string(),
        None => format!("{} (self-signed)", settings.node.data_dir.join("self-signed.crt").display()),
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn text(overrides: &[&str], data_dir: Option<&str>, is_new: bool) -> String {
        let source = Source {
            overrides: overrides.iter().map(|&text| text.to_owned()).collect(),
            data_dir: data_dir.map(Into::into),
            ..Source::default()
        };
        let config = Config::load(&source).expect("valid");
        let ready = Ready {
            pid: 1,
            c2s: Some(5222),
            c2s_tls: Some(5223),
            websocket: Some(5280),
            light: None,
            quic: None,
            http: Some(8080),
            https: None,
            health: None,
        };
        let http = "127.0.0.1:8080".parse().expect("an address");
        Welcome { config: &config, ready, http, is_new }.text()
    }

    #[test]
    fn a_first_start_says_where_everything_is_and_what_to_type() {
        assert_eq!(
            text(&["listen.address=127.0.0.1,::1", "http.address="], Some("it's here"), true),
            concat!(
                "Carillon ",
                env!("CARGO_PKG_VERSION"),
                " is ready: domain localhost, data in it's here

  XMPP, STARTTLS        127.0.0.1:5222, [::1]:5222
  XMPP, direct TLS      127.0.0.1:5223, [::1]:5223
  XMPP, WebSocket       ws://127.0.0.1:5280/xmpp-websocket, ws://[::1]:5280/xmpp-websocket
  HTTP API              http://127.0.0.1:8080, http://[::1]:8080
  API documentation     http://127.0.0.1:8080/docs
  Console               http://127.0.0.1:8080/console  (sign in with the admin key)
  Admin key             it's here/admin.key
  Certificate           it's here/self-signed.crt (self-signed)

Next, in another terminal:

  carillon account create alice@localhost --password secret --data-dir 'it'\\''s here'
  carillon connect alice@localhost --password secret --data-dir 'it'\\''s here'

"
            )
        );
    }

    #[test]
    fn a_later_start_is_short() {
        let text = text(&["data_dir=/var/lib/carillon"], None, false);
        assert!(
            text.ends_with("\n\nFigures of the node: carillon status --data-dir /var/lib/carillon\n\n"),
            "{text}"
        );
    }
}

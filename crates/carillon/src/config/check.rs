//! Rules that hold between settings, or that a bound cannot say.

use super::{Config, Kind, Origin, Problem, Setting, Settings};
use std::collections::BTreeMap;

/// What breaks a rule.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let settings = &config.settings;
    let broken = [
        ports(settings),
        some_listener(settings),
        listen_address(settings),
        stanza_bytes(settings),
        tls(settings),
        websocket_path(settings),
        mechanisms(settings),
    ];
    broken
        .into_iter()
        .flatten()
        .map(|(key, rule)| Problem::Rule { place: place(config, key), key, rule })
        .collect()
}

/// A setting to change, and the rule it breaks.
type Broken = Option<(&'static str, String)>;

fn place(config: &Config, key: &str) -> String {
    let setting = Setting::named(key).expect("rules name settings that exist: a test breaks each");
    match config.origin(setting) {
        Origin::Default => "default".to_owned(),
        Origin::Profile => "limits.profile".to_owned(),
        Origin::Set(place) => place.to_string(),
    }
}

/// Two listeners cannot share a port; 0 is never the same one.
fn ports(s: &Settings) -> Broken {
    let listeners = [
        (s.c2s.enabled, s.c2s.port, "c2s.port"),
        (s.c2s_tls.enabled, s.c2s_tls.port, "c2s_tls.port"),
        (s.websocket.enabled, s.websocket.port, "websocket.port"),
        (true, s.http.port, "http.port"),
    ];
    let mut taken = BTreeMap::new();
    for (_, port, key) in listeners.into_iter().filter(|(enabled, port, _)| *enabled && *port != 0) {
        if let Some(other) = taken.insert(port, key) {
            return Some((key, format!("port {port} is that of {other} already")));
        }
    }
    None
}

fn some_listener(s: &Settings) -> Broken {
    let any = s.c2s.enabled || s.c2s_tls.enabled || s.websocket.enabled;
    (!any).then(|| {
        ("c2s.enabled", "one of c2s.enabled, c2s_tls.enabled and websocket.enabled has to be true".to_owned())
    })
}

fn listen_address(s: &Settings) -> Broken {
    s.listen.address.is_empty().then(|| ("listen.address", "it needs at least one address".to_owned()))
}

fn stanza_bytes(s: &Settings) -> Broken {
    let (before, after) = (s.limits.stanza_bytes_before_auth, s.limits.stanza_bytes);
    (before > after).then(|| {
        let rule = format!("{before} is over limits.stanza_bytes, which is {after}");
        ("limits.stanza_bytes_before_auth", rule)
    })
}

fn tls(s: &Settings) -> Broken {
    match (&s.tls.certificate, &s.tls.key) {
        (Some(_), None) => Some(("tls.key", "it has to be set, because tls.certificate is".to_owned())),
        (None, Some(_)) => Some(("tls.certificate", "it has to be set, because tls.key is".to_owned())),
        _ => None,
    }
}

fn websocket_path(s: &Settings) -> Broken {
    (!s.websocket.path.starts_with('/')).then(|| ("websocket.path", "it has to begin with /".to_owned()))
}

fn mechanisms(s: &Settings) -> Broken {
    let kind = Setting::named("auth.mechanisms").map(|s| s.kind);
    s.auth.mechanisms.is_empty().then(|| {
        let words = kind.as_ref().map(Kind::bounds).unwrap_or_default();
        ("auth.mechanisms", format!("it needs at least one of {words}"))
    })
}

//! The wiring: settings become what each crate is started with. The stores, buses and queues among it are opened in `crate::backends`.

use crate::config::Settings;
use carillon_core::ports::modules::Runtime;
use carillon_core::settings as core;
use carillon_http::{PushApps, PushTemplates, VapidKey, WebhookRoots};
use carillon_server::Options;
use carillon_server::tls::{self, SettingsError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// What the core is started with: its settings, and what follows from others. `secret` is the node's own, the same after a
/// restart; `vapid` is the key by which push services know it.
pub fn core(settings: &Settings, secret: [u8; 32], vapid: &str) -> core::Settings {
    let mut core = core::Settings { secret, ..settings.core.clone() };
    core.push.vapid = vapid.into();
    core.push.apps = push_app_names(settings);
    let light = &mut core.light.domain;
    let named = if light.is_empty() { settings.node.domain.as_str() } else { &**light };
    // A domain's name as the node knows it; one that is no name is found nowhere, and the clients are told so.
    *light = carillon_wire::jid::prepare_domain(named).unwrap_or_default().into();
    if !settings.node.stream_management {
        core.features_disabled.push("stream_management".to_owned());
    }
    core
}

/// The certificates: the operator's, or a self-signed one of the data folder, and those for further hosts.
pub fn certificates(settings: &Settings) -> Result<tls::Settings, SettingsError> {
    let node = &settings.node;
    let tls = match (&node.certificate, &node.certificate_key) {
        (Some(certificate), Some(key)) => tls::Settings::load(certificate, key)?,
        _ => tls::Settings::self_signed_in(&node.data_dir, &certified_names(settings))?,
    };
    match &node.certificates {
        Some(folder) => tls.with_certificates(&tls::certificate_files(folder)?),
        None => Ok(tls),
    }
}

/// Whom the self-signed certificate is for: the domain, and the names and addresses by which clients reach this machine.
fn certified_names(settings: &Settings) -> Vec<String> {
    let mut names = vec![settings.node.domain.clone()];
    // A host name in other letters cannot be in a certificate, and its ASCII form may be.
    names.extend(Some(settings.node.host.clone()).filter(|host| !host.is_empty() && host.is_ascii()));
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let addresses = settings.server.addresses.iter().filter(|address| !address.is_unspecified());
    names.extend(addresses.map(ToString::to_string));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// What the server is started with.
pub fn server(settings: &Settings) -> Options {
    let mut options = settings.server.clone();
    options.event_log.folder = event_folder(settings);
    if settings.http.cells.front {
        // Its devices connect to their cells.
        options.c2s.enabled = false;
        options.c2s_tls.enabled = false;
        options.websocket.enabled = false;
        options.light.port = None;
        options.quic = None;
    }
    options
}

/// The folder of the event log.
pub fn event_folder(settings: &Settings) -> PathBuf {
    let folder = &settings.server.event_log.folder;
    if folder.as_os_str().is_empty() { settings.node.data_dir.join("events") } else { folder.clone() }
}

/// The key by which push services know this server: that of `push.vapid_key_file`, or one that follows from the node's secret.
pub fn vapid(settings: &Settings, secret: &[u8; 32]) -> Result<VapidKey, String> {
    settings
        .http
        .push
        .vapid_key_file
        .as_deref()
        .map_or_else(|| Ok(VapidKey::of_secret(secret)), VapidKey::load)
}

/// The apps that push services of makers of devices know, with what their files hold.
pub fn push_apps(settings: &Settings) -> Result<PushApps, String> {
    PushApps::load(&settings.push_apps)
}

/// What devices show of pushes.
pub fn push_templates(settings: &Settings) -> Result<PushTemplates, String> {
    PushTemplates::new(&settings.push_templates).map_err(|error| format!("push.templates.{error}"))
}

/// These apps as the core knows them.
fn push_app_names(settings: &Settings) -> Vec<core::PushApp> {
    let prepared = |domain: &String| carillon_wire::jid::prepare_domain(domain).unwrap_or_default().into();
    let apps = settings.push_apps.iter().map(|(name, app)| core::PushApp {
        name: name.as_str().into(),
        service: app.service,
        domains: app.domains.iter().map(prepared).collect(),
    });
    apps.collect()
}

/// The authorities of `webhooks.ca_file`.
pub fn webhook_roots(settings: &Settings) -> Result<WebhookRoots, String> {
    settings.http.webhooks.ca_file.as_deref().map_or_else(|| Ok(WebhookRoots::default()), WebhookRoots::load)
}

/// What compiles modules, where this is built with the feature `modules`.
pub fn modules() -> Option<Arc<dyn Runtime>> {
    #[cfg(feature = "modules")]
    {
        use carillon_modules::{Bounds, WasmRuntime};
        Some(Arc::new(WasmRuntime::new(Bounds::default())))
    }
    #[cfg(not(feature = "modules"))]
    {
        None
    }
}

/// What the HTTP side is started with. `ports` are those the server bound.
pub fn http(
    settings: &Settings,
    core: Arc<core::Settings>,
    ports: carillon_server::Ports,
    webhook_roots: WebhookRoots,
    vapid: VapidKey,
    push_apps: watch::Receiver<PushApps>,
    push_templates: watch::Receiver<PushTemplates>,
) -> carillon_http::Options {
    let (node, websocket) = (&settings.node, &settings.server.websocket);
    let host = if node.host.is_empty() { &node.domain } else { &node.host };
    let scheme = if websocket.tls { "wss" } else { "ws" };
    let made = ports.websocket.map(|port| format!("{scheme}://{host}:{port}{}", websocket.path));
    let mut http = settings.http.clone();
    if http.upload.folder.as_os_str().is_empty() {
        http.upload.folder = node.data_dir.join("uploads");
    }
    carillon_http::Options {
        settings: http,
        core,
        default_domain: node.domain.clone(),
        drain_timeout_ms: node.drain_timeout_ms,
        webhook_roots,
        vapid,
        push_apps,
        push_templates,
        queues: Vec::new(),
        objects: None,
        traces_kept_ms: settings.server.traces_kept_ms,
        trusted_proxies: carillon_server::TrustedProxies::new(&settings.server.trusted_proxies),
        endpoints: carillon_http::Endpoints {
            host: (!node.host.is_empty()).then(|| node.host.clone()),
            c2s_port: ports.c2s,
            c2s_tls_port: ports.c2s_tls,
            websocket_url: if node.websocket_url.is_empty() {
                made
            } else {
                Some(node.websocket_url.clone())
            },
        },
    }
}

/// The node's secret: that of its cell, or 32 bytes in the data folder, made once.
pub fn secret(settings: &Settings) -> Result<[u8; 32], String> {
    let Some(path) = &settings.cell.secret_file else {
        return own_secret(&settings.node.data_dir).map_err(|e| e.to_string());
    };
    let bytes = std::fs::read(path).map_err(|e| format!("cell.secret_file: {}: {e}", path.display()))?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| format!("cell.secret_file: {} has {length} bytes, not 32", path.display()))
}

fn own_secret(data_dir: &Path) -> std::io::Result<[u8; 32]> {
    let path = data_dir.join("node.secret");
    match std::fs::read(&path) {
        Ok(bytes) if bytes.len() == 32 => Ok(bytes.try_into().expect("32 bytes")),
        Ok(_) => Err(std::io::Error::other(format!(
            "{} is not 32 bytes; remove it to have a new one",
            path.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            crate::files::write_whole(&path, &bytes, 0o600)?;
            Ok(bytes)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Source};
    use carillon_server::{Bounds, Ports};

    /// Nothing that an operator left alone is anything but what the crate that uses it says.
    #[test]
    fn a_default_configuration_is_the_default_of_every_crate() {
        let config = Config::load(&Source::default()).expect("valid");
        let settings = &config.settings;
        let light = core::Light { domain: "localhost".into(), ..core::Light::default() };
        let core = core(settings, [7; 32], "");
        assert_eq!(core, core::Settings { secret: [7; 32], light, ..core::Settings::default() });
        let mut options = Options::default();
        options.event_log.folder = "./data/events".into();
        assert_eq!(server(settings), options);
        assert_ne!(options.bounds, Bounds::NONE);
        let core = Arc::new(core);
        let roots = webhook_roots(settings).expect("none are set");
        let (key, apps) = (VapidKey::of_secret(&[7; 32]), watch::channel(PushApps::default()).1);
        let templates = watch::channel(PushTemplates::default()).1;
        let options = http(settings, Arc::clone(&core), Ports::default(), roots, key, apps, templates);
        let mut http = carillon_http::Settings::default();
        http.upload.folder = "./data/uploads".into();
        assert_eq!(options.settings, http);
        assert!(Arc::ptr_eq(&options.core, &core), "what two crates read is one value");
    }

    #[test]
    fn what_is_left_empty_follows_from_the_domain_and_the_data_folder() {
        let overrides =
            ["domain=Example.ORG", "data_dir=/d", "stream_management.enabled=false", "features.disabled=csi"];
        let source = Source { overrides: overrides.map(str::to_owned).to_vec(), file: None, data_dir: None };
        let settings = Config::load(&source).expect("valid").settings;
        let core = core(&settings, [0; 32], "");
        assert_eq!(&*core.light.domain, "example.org");
        assert_eq!(core.features_disabled, ["csi", "stream_management"]);
        assert_eq!(server(&settings).event_log.folder, Path::new("/d/events"));
    }
}

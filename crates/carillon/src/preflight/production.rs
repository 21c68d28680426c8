//! What a node on the public internet should not have, though a node on a desk may: `carillon config check --production`.

use super::{Finding, Severity};
use crate::config::{Profile, Settings};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What is found in these settings beyond what is always looked for. Errors are what makes the node unsafe, or useless, to the
/// public; warnings are what an operator may want, and should have thought about.
pub(super) fn inspect(settings: &Settings) -> Vec<Finding> {
    let found = [
        example_domain(settings),
        own_certificate(settings),
        relative_folder(settings),
        volatile_folder(settings),
        readable_folder(settings),
        loopback_alone(settings),
        no_limits(settings),
        readable_memory(settings),
        superuser(),
        open_registration(settings),
        opened_networks(settings),
        opened_networks_of_pushes(settings),
        match_demo(settings),
        no_event_log(settings),
    ];
    let secrets =
        secret_files(settings).into_iter().filter_map(|(setting, file)| readable_secret(setting, file));
    found
        .into_iter()
        .flatten()
        .chain(secrets)
        .chain(unlimited(settings))
        .chain(bus(settings))
        .chain(sandboxes(settings))
        .collect()
}

/// What is a warning for a node on a desk, and an error for one in production: what others can read on the way.
pub(super) fn sharpened(finding: Finding) -> Finding {
    let is_exposure =
        matches!(finding.setting, "http.address" | "http.metrics_key" | "websocket.tls" | "tls.key");
    let severity = if is_exposure { Severity::Error } else { finding.severity };
    Finding { severity, ..finding }
}

fn example_domain(settings: &Settings) -> Option<Finding> {
    let domain = &settings.node.domain;
    (domain == "localhost").then(|| {
        Finding::refused(
            "domain",
            "it is localhost, which every machine means itself by",
            "set it to the domain that is in the addresses of accounts",
        )
    })
}

fn own_certificate(settings: &Settings) -> Option<Finding> {
    settings.node.certificate.is_none().then(|| {
        Finding::refused(
            "tls.certificate",
            "the node has a certificate of its own making, which clients refuse unless they pin it",
            "have one issued for the domain, and set tls.certificate and tls.key",
        )
    })
}

fn relative_folder(settings: &Settings) -> Option<Finding> {
    let folder = &settings.node.data_dir;
    folder.is_relative().then(|| {
        Finding::refused(
            "data_dir",
            format!("{} depends on the folder that the node is started in", folder.display()),
            "set it to an absolute path",
        )
    })
}

/// A folder in memory. Only looked at where it is there.
fn volatile_folder(settings: &Settings) -> Option<Finding> {
    let folder = &settings.node.data_dir;
    let kind = rustix::fs::statfs(folder).ok()?.f_type;
    matches!(kind as u64, TMPFS | RAMFS).then(|| {
        let what = format!("{} is in memory: everything is lost when the machine restarts", folder.display());
        Finding::refused("data_dir", what, "set it to a folder on a disk")
    })
}

fn readable_folder(settings: &Settings) -> Option<Finding> {
    let folder = &settings.node.data_dir;
    let mode = fs::metadata(folder).ok()?.permissions().mode();
    (mode & 0o007 != 0).then(|| {
        let shown = folder.display();
        Finding::warning(
            "data_dir",
            format!("every user of this machine can look into {shown}"),
            format!("run `chmod o= {shown}`"),
        )
    })
}

fn loopback_alone(settings: &Settings) -> Option<Finding> {
    let addresses = &settings.server.addresses;
    let is_alone = addresses.iter().all(|address| address.to_canonical().is_loopback());
    (is_alone && settings.server.trusted_proxies.is_empty()).then(|| {
        Finding::warning(
            "listen.address",
            "only this machine reaches the ports of clients",
            "set it to [\"0.0.0.0\", \"::\"], or name the proxy of this machine in listen.trusted_proxies",
        )
    })
}

fn no_limits(settings: &Settings) -> Option<Finding> {
    (settings.profile == Profile::Benchmark).then(|| {
        Finding::refused(
            "limits.profile",
            "it is benchmark, which lifts the limits on guesses at passwords, among others",
            "set it to default",
        )
    })
}

/// Limits that somebody switched off one by one.
fn unlimited(settings: &Settings) -> Vec<Finding> {
    let (bounds, limits) = (&settings.server.bounds, &settings.core.limits);
    let off = [
        ("limits.connections_per_address", bounds.connections_per_address == 0),
        ("limits.connect_rate_per_second", bounds.connects_per_second == 0),
        ("limits.handshakes_in_flight", bounds.handshakes_in_flight == 0),
        ("limits.stanzas_per_second", limits.rates.stanzas_per_second == 0),
        ("limits.bytes_per_second", limits.rates.bytes_per_second == 0),
    ];
    let is_benchmark = settings.profile == Profile::Benchmark;
    let off = off.into_iter().filter(|(_, is_off)| *is_off && !is_benchmark);
    off.map(|(setting, _)| {
        Finding::warning(setting, "it is 0, so that one client may take what all need", "set it to a number")
    })
    .collect()
}

fn readable_memory(settings: &Settings) -> Option<Finding> {
    settings.node.core_dumps.then(|| {
        Finding::refused(
            "core_dumps",
            "a crash writes keys and messages to a file",
            "set it to false, except while you look for a fault",
        )
    })
}

fn superuser() -> Option<Finding> {
    rustix::process::geteuid().is_root().then(|| {
        Finding::warning(
            "",
            "this is the user root; a fault of the node would have the whole machine",
            "run the check, and the node, as a user of its own, as deploy/systemd does",
        )
    })
}

fn open_registration(settings: &Settings) -> Option<Finding> {
    settings.policy.registration.then(|| {
        Finding::warning(
            "registration.in_band",
            "anybody can create accounts",
            "set it to false and invite people (invitations.enabled), or be ready for those who send spam",
        )
    })
}

fn opened_networks(settings: &Settings) -> Option<Finding> {
    (!settings.http.webhooks.allow_addresses.is_empty()).then(|| {
        Finding::warning(
            "webhooks.allow_addresses",
            "webhooks may go to networks that are not public",
            "keep it empty where keys with scope admin are given to others",
        )
    })
}

fn opened_networks_of_pushes(settings: &Settings) -> Option<Finding> {
    (!settings.http.push.allow_addresses.is_empty()).then(|| {
        Finding::warning(
            "push.allow_addresses",
            "every account can have requests made to networks that are not public",
            "keep it empty, unless all accounts are trusted",
        )
    })
}

fn match_demo(settings: &Settings) -> Option<Finding> {
    settings.http.match_demo.then(|| {
        Finding::refused(
            "matches.demo",
            "whoever reaches the HTTP side plays a game on this node, without an account",
            "set it to false",
        )
    })
}

/// Apps whose pushes reach nobody who has the app from the store.
fn sandboxes(settings: &Settings) -> Vec<Finding> {
    let in_sandbox = settings.push_apps.iter().filter(|(_, app)| app.sandbox);
    let found = in_sandbox.map(|(name, _)| {
        Finding::warning(
            "push.apps",
            format!("{name} is at the sandbox of APNs, which knows devices of developers only"),
            "have another app without `sandbox` for those who have it from the store",
        )
    });
    found.collect()
}

fn no_event_log(settings: &Settings) -> Option<Finding> {
    (!settings.server.event_log.enabled).then(|| {
        Finding::warning(
            "event_log.enabled",
            "nobody can find out later who connected, and what became of a message",
            "set it to true",
        )
    })
}

/// The bus of a cell that others could listen to, or speak on.
fn bus(settings: &Settings) -> Vec<Finding> {
    let cell = &settings.cell;
    let servers = cell.nats.split(',').map(str::trim).filter(|server| !server.is_empty());
    let is_far = |server: &str| {
        let host = server.trim_start_matches("nats://").rsplit('@').next().unwrap_or_default();
        !["127.0.0.1", "localhost", "[::1]"].iter().any(|near| host.starts_with(near))
    };
    let plain = servers.filter(|server| !server.starts_with("tls://") && is_far(server));
    let mut found: Vec<Finding> = plain
        .map(|server| {
            Finding::refused(
                "cell.nats",
                format!("{server} is reached without TLS: what nodes tell each other can be read on the way"),
                "use tls://, with cell.nats_ca_file if its authority is your own",
            )
        })
        .collect();
    if !cell.nats.is_empty() && cell.nats_credentials.is_none() && !cell.nats.contains('@') {
        found.push(Finding::warning(
            "cell.nats_credentials",
            "the node does not say who it is: whoever reaches the NATS servers can speak for nodes",
            "give nodes credentials, with rights on the subjects of cell.prefix alone",
        ));
    }
    found
}

/// Files that nobody but the node has to read.
fn secret_files(settings: &Settings) -> Vec<(&'static str, &Path)> {
    let (node, cell) = (&settings.node, &settings.cell);
    let named = [
        ("store.password_file", node.store_password_file.as_deref()),
        ("cell.secret_file", cell.secret_file.as_deref()),
        ("cell.nats_credentials", cell.nats_credentials.as_deref()),
    ];
    let of_apps = settings.push_apps.values().flat_map(carillon_http::PushAppSettings::secret_files);
    let of_apps = of_apps.map(|(_, file)| ("push.apps", file));
    named.into_iter().filter_map(|(setting, file)| Some((setting, file?))).chain(of_apps).collect()
}

fn readable_secret(setting: &'static str, file: &Path) -> Option<Finding> {
    let mode = fs::metadata(file).ok()?.permissions().mode();
    (mode & 0o007 != 0).then(|| {
        let file = file.display();
        let remedy = format!("run `chmod o= {file}`");
        Finding::refused(setting, format!("every user of this machine can read {file}"), remedy)
    })
}

/// `f_type` of `statfs(2)`.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

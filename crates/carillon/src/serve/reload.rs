//! SIGHUP: settings that can change while the node runs.

use super::Running;
use crate::assemble;
use crate::config::{Config, Origin, SETTINGS};
use crate::process::telemetry::Telemetry;
use carillon_core::model::Policy;
use carillon_core::ports::store::domains::PutDomain;
use std::sync::Arc;

impl Running {
    /// Reads the configuration again and applies what can be applied.
    pub(super) fn reload(&mut self, telemetry: &Telemetry) {
        let reloaded = match self.config.reload() {
            Ok(reloaded) => reloaded,
            Err(problems) => {
                tracing::error!(%problems, "the configuration was not reloaded");
                return;
            }
        };
        self.config = reloaded.config;
        let settings = &self.config.settings;
        telemetry.set_level(settings.log.level);
        self.server.reload_settings(&Arc::new(assemble::core(settings, self.secret, &self.vapid)));
        self.server.reload_bounds(settings.server.bounds, settings.server.out_queues);
        self.server.reload_events(settings.server.event_log.kinds);
        // What cannot be read leaves what was there: pushes go on with it.
        match assemble::push_apps(settings) {
            Ok(apps) => self.pushes.apps.send_modify(|present| *present = apps.keeping(present)),
            Err(error) => tracing::error!(%error, "the apps of pushes were not reloaded"),
        }
        match assemble::push_templates(settings) {
            Ok(templates) => drop(self.pushes.templates.send_replace(templates)),
            Err(error) => tracing::error!(%error, "the templates of pushes were not reloaded"),
        }
        self.read_certificates();
        self.reload_policy();
        for key in reloaded.needs_restart {
            tracing::warn!(key, "changed, but only a restart applies it");
        }
        tracing::info!(changed = ?reloaded.changed, "reloaded");
    }

    /// Reads the certificates again.
    pub(super) fn read_certificates(&mut self) {
        match self.certificates.read(&self.config.settings) {
            Ok(tls) => {
                self.server.reload_tls(&tls);
                self.http.reload_tls(&tls);
                tracing::info!(names = ?tls.names(), "certificates reloaded");
            }
            Err(error) => {
                tracing::error!(%error, "the certificates were not reloaded: those before are shown");
            }
        }
    }

    fn reload_policy(&self) {
        let domain = self.config.settings.node.domain.clone();
        let Some(present) = self.server.node().domains().named(&domain).map(|d| d.granted) else { return };
        let put = PutDomain { name: domain.into(), policy: policy(&self.config, present) };
        let node = self.server.node();
        self.server.node().ask(put, move |answer| match answer {
            Ok(_) => node.reload_domains(Box::new(|()| {})),
            Err(fault) => tracing::error!(%fault, "the domain's policy was not reloaded"),
        });
    }
}

/// What the configured domain is granted: what the configuration says, and where it says nothing, what it was.
pub(super) fn policy(config: &Config, present: Policy) -> Policy {
    let set = |key: &str| {
        let setting = SETTINGS.iter().find(|s| s.key == key).expect("a key of this program");
        *config.origin(setting) != Origin::Default
    };
    let wanted = config.settings.policy;
    let mut policy = present;
    macro_rules! said {
        ($($key:literal: $field:ident),* $(,)?) => {
            $(if set($key) {
                policy.$field = wanted.$field;
            })*
        };
    }
    // The node's own setting bounds resumption for all domains.
    said! {
        "sessions.policy": sessions,
        "registration.in_band": registration,
        "registration.account_management": account_management,
        "pubsub.create": pubsub_create,
        "sessions.max_per_account": sessions_max,
        "messages.durable": messages_durable,
        "messages.other_domains": other_domains,
        "archive.enabled": archive,
        "archive.days": archive_days,
        "archive.messages_max": archive_messages_max,
        "archive.bytes_max": archive_bytes_max,
        "rooms.create": rooms_create,
        "rooms.max": rooms_max,
        "rooms.archive_days": room_archive_days,
        "rooms.events": room_events,
    }
    policy
}

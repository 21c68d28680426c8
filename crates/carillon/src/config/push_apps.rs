//! The settings of apps that push services of makers of devices know: a table for each, `push.apps.NAME`, with the same settings in each.

use super::declare::{Reload, Setting, settings};
use super::kind::{Kind, Written, path, text};
use super::value::{Field, Words};
use super::{Config, Place, Problem, table};
use carillon_core::model::AppService;
use carillon_http::{ApnsPushType, PushAppSettings};

/// What the keys of all apps begin with.
pub(super) const TABLE: &str = "push.apps";

settings! {
    /// The settings of each app.
    PUSH_APP of PushAppSettings;

    "Apps that are woken by APNs or FCM. Each is a table `push.apps.NAME` (docs/book/push.md), whose name has letters, digits, `-` and `_`; on the command line `--set push.apps.NAME.service=…`. They have no variables of the environment. SIGHUP reads their files again." {
        /// The push service: APNs of Apple, or FCM of Google.
        "service" = service, Kind::Choice(AppService::WORDS), Live;
        /// Domains whose accounts may use the app; empty for all.
        "domains" = domains, Kind::Names, Live;
        /// Where the push service is, as `https://HOST`; empty for where its maker has it. `http://` is for this machine only.
        "url" = url, text(0, 255), Live;
        /// APNs: whether the devices have the app from its developers, and not from the store: then Apple has another push service for it.
        "sandbox" = sandbox, Kind::Switch, Live;
        /// APNs: the topic, which is the identifier of the app's bundle, such as `com.example.chat`.
        "topic" = topic, text(0, 255), Live;
        /// APNs: whether pushes are shown by the device, or wake the app without being shown, which Apple allows a few times per hour.
        "push_type" = push_type, Kind::Choice(ApnsPushType::WORDS), Live;
        /// APNs: what people read where the push does not tell what it is about.
        "alert" = alert, text(1, 200), Live;
        /// APNs: a file with the key that signs tokens, as Apple gives it (`AuthKey_….p8`).
        "key_file" = key_file, path(0), Live;
        /// APNs: the name of that key, of ten characters.
        "key_id" = key_id, text(0, 64), Live;
        /// APNs: the team that the key belongs to, of ten characters.
        "team_id" = team_id, text(0, 64), Live;
        /// APNs: a file with a certificate and its key (PEM), instead of a key for tokens.
        "certificate_file" = certificate_file, path(0), Live;
        /// FCM: the file of a service account (JSON), as the console of Firebase gives it.
        "service_account_file" = service_account_file, path(0), Live;
    }
}

/// Gives a setting of an app its value.
pub(super) fn apply(
    config: &mut Config,
    app: &str,
    member: &str,
    written: &Written,
    place: Place,
) -> Result<(), Problem> {
    config.app_places.entry(app.to_owned()).or_insert_with(|| place.clone());
    let settings = config.settings.push_apps.entry(app.to_owned()).or_default();
    table::put(PUSH_APP, settings, (format!("{TABLE}.{app}.{member}"), member), written, place)
}

/// Problems of apps whose settings do not fit together.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let problem = |(name, app): (&String, &PushAppSettings)| {
        let (member, rule) = match table::is_name(name) {
            true => app.broken().map(|(member, rule)| (format!(".{member}"), rule))?,
            false => (String::new(), "the name of an app has up to 64 letters, digits, - and _".to_owned()),
        };
        let place = config.app_places.get(name)?.clone();
        Some(Problem::Rule { place, key: format!("{TABLE}.{name}{member}").into(), rule })
    };
    config.settings.push_apps.iter().filter_map(problem).collect()
}

//! Apps that push services of makers of devices know: what an operator says of each, and what proves to the push service that this server may wake it.

use super::jwt;
use crate::outgoing::origin::Origin;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::EcdsaKeyPair;
use carillon_core::model::AppService;
use carillon_wire::jid::prepare_domain;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an operator decides about an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAppSettings {
    /// The push service.
    pub service: AppService,
    /// Domains whose accounts may use it; none for all.
    pub domains: Vec<String>,
    /// Where the push service is; empty for where its maker has it.
    pub url: String,
    /// APNs: whether it is the one for apps under development.
    pub sandbox: bool,
    /// APNs: the topic, which is the identifier of the app's bundle.
    pub topic: String,
    /// APNs: the kind of its pushes.
    pub push_type: ApnsPushType,
    /// APNs: what people read where the push tells nothing.
    pub alert: String,
    /// APNs: a file with the key that signs tokens (PEM).
    pub key_file: Option<PathBuf>,
    /// APNs: the name of that key.
    pub key_id: String,
    /// APNs: the team that it belongs to.
    pub team_id: String,
    /// APNs: a file with a certificate and its key (PEM), instead of a key for tokens.
    pub certificate_file: Option<PathBuf>,
    /// FCM: the file of a service account (JSON).
    pub service_account_file: Option<PathBuf>,
}

/// How a device treats a push of APNs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApnsPushType {
    /// It is shown.
    #[default]
    Alert,
    /// The app is woken, and nothing is shown.
    Background,
}

impl Default for PushAppSettings {
    fn default() -> PushAppSettings {
        PushAppSettings {
            service: AppService::Apns,
            domains: Vec::new(),
            url: String::new(),
            sandbox: false,
            topic: String::new(),
            push_type: ApnsPushType::Alert,
            alert: "New message".to_owned(),
            key_file: None,
            key_id: String::new(),
            team_id: String::new(),
            certificate_file: None,
            service_account_file: None,
        }
    }
}

impl PushAppSettings {
    /// Which setting is missing or wrong, and why; files are not looked at.
    pub fn broken(&self) -> Option<(&'static str, String)> {
        if !self.url.is_empty()
            && let Err(error) = Origin::of(&self.url)
        {
            return Some(("url", error));
        }
        let missing = |setting, what: &str| Some((setting, format!("it has to be set: {what}")));
        match self.service {
            AppService::Apns if self.topic.is_empty() => {
                missing("topic", "the identifier of the app's bundle")
            }
            AppService::Apns if self.certificate_file.is_some() => {
                let both = self.key_file.is_some();
                both.then(|| {
                    ("certificate_file", "an app has a key for tokens or a certificate, not both".to_owned())
                })
            }
            AppService::Apns if self.key_file.is_none() => {
                missing("key_file", "the key for tokens, or certificate_file")
            }
            AppService::Apns if self.key_id.is_empty() => missing("key_id", "the name of the key"),
            AppService::Apns if self.team_id.is_empty() => missing("team_id", "the team of the key"),
            AppService::Apns => None,
            AppService::Fcm if self.service_account_file.is_none() => {
                missing("service_account_file", "what the console of Firebase gives for a service account")
            }
            AppService::Fcm => None,
        }
    }

    /// Files with secrets, by their settings.
    pub fn secret_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("key_file", &self.key_file),
            ("certificate_file", &self.certificate_file),
            ("service_account_file", &self.service_account_file),
        ];
        files.into_iter().filter_map(|(setting, file)| Some((setting, file.as_deref()?)))
    }

    /// Where the push service is.
    pub(crate) fn url(&self) -> &str {
        match self.service {
            _ if !self.url.is_empty() => &self.url,
            AppService::Apns if self.sandbox => "https://api.sandbox.push.apple.com",
            AppService::Apns => "https://api.push.apple.com",
            AppService::Fcm => "https://fcm.googleapis.com",
        }
    }
}

/// Apps by their names. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PushApps(Arc<BTreeMap<String, Arc<PushApp>>>);

/// An app with what its files hold. Its `Debug` form does not show that.
pub(crate) struct PushApp {
    pub(crate) settings: PushAppSettings,
    pub(crate) credentials: Credentials,
    /// Of all its files.
    digest: [u8; 32],
}

/// What proves to a push service who sends.
pub(crate) enum Credentials {
    ApnsToken(EcdsaKeyPair),
    ApnsCertificate(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    Fcm(ServiceAccount),
}

/// A service account of Google.
pub(crate) struct ServiceAccount {
    pub(crate) project: String,
    pub(crate) email: String,
    pub(crate) key_id: String,
    pub(crate) token_uri: String,
    pub(crate) key: RsaKeyPair,
}

impl fmt::Debug for PushApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushApp").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl PushApps {
    /// Reads the files of apps.
    ///
    /// # Errors
    /// When one of them cannot be read, or does not hold what it should; which one, and why.
    pub fn load(settings: &BTreeMap<String, PushAppSettings>) -> Result<PushApps, String> {
        let load = |(name, settings): (&String, &PushAppSettings)| {
            let app = PushApp::load(settings).map_err(|error| format!("push.apps.{name}.{error}"))?;
            Ok((name.clone(), Arc::new(app)))
        };
        settings.iter().map(load).collect::<Result<_, String>>().map(|apps| PushApps(Arc::new(apps)))
    }

    /// These, and of those that are as they were in `present` the same ones, with their connections.
    #[must_use]
    pub fn keeping(self, present: &PushApps) -> PushApps {
        let kept = self.0.iter().map(|(name, app)| {
            let same =
                present.0.get(name).filter(|old| old.settings == app.settings && old.digest == app.digest);
            (name.clone(), same.unwrap_or(app).clone())
        });
        PushApps(Arc::new(kept.collect()))
    }

    /// The app of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<PushApp>> {
        self.0.get(name)
    }
}

impl PushApp {
    fn load(settings: &PushAppSettings) -> Result<PushApp, String> {
        if let Some((setting, rule)) = settings.broken() {
            return Err(format!("{setting}: {rule}"));
        }
        let prepared =
            |domain: &String| prepare_domain(domain).map_err(|_| format!("domains: `{domain}` is no domain"));
        let domains = settings.domains.iter().map(prepared).collect::<Result<_, String>>()?;
        let Some((setting, path)) = settings.secret_files().next() else {
            return Err("service: it has no file of credentials".to_owned());
        };
        let failed = |error: &dyn fmt::Display| format!("{setting}: {}: {error}", path.display());
        let text = std::fs::read(path).map_err(|error| failed(&error))?;
        let credentials = match setting {
            "key_file" => jwt::ec_key(&text).map(Credentials::ApnsToken),
            "certificate_file" => certificate(&text),
            _ => service_account(&text).map(Credentials::Fcm),
        };
        let credentials = credentials.map_err(|error| failed(&error))?;
        let settings = PushAppSettings { domains, ..settings.clone() };
        Ok(PushApp { settings, credentials, digest: Sha256::digest(&text).into() })
    }
}

fn certificate(text: &[u8]) -> Result<Credentials, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(text).map_err(|error| format!("its key: {error}"))?;
    Ok(Credentials::ApnsCertificate(chain, key))
}

fn service_account(text: &[u8]) -> Result<ServiceAccount, String> {
    /// As Google writes it.
    #[derive(serde::Deserialize)]
    struct File {
        project_id: String,
        private_key_id: String,
        private_key: String,
        client_email: String,
        token_uri: String,
    }

    // What serde says could quote the key.
    let file: File = serde_json::from_slice(text).map_err(|error| {
        format!("it is not the JSON of a service account (line {}, column {})", error.line(), error.column())
    })?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    if file.project_id.is_empty() || !file.project_id.bytes().all(is_plain) {
        return Err("`project_id` is no name of a project".to_owned());
    }
    Origin::of(&file.token_uri).map_err(|error| format!("`token_uri`: {error}"))?;
    let key = jwt::rsa_key(file.private_key.as_bytes()).map_err(|error| format!("`private_key`: {error}"))?;
    Ok(ServiceAccount {
        project: file.project_id,
        email: file.client_email,
        key_id: file.private_key_id,
        token_uri: file.token_uri,
        key,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::jwt::tests::{ec_pem, rsa_pem};
    use super::*;
    use serde_json::json;
    use std::fs;

    /// A service account of the project `p`.
    pub(crate) fn account_json(token_uri: &str) -> String {
        json!({
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "k1",
            "private_key": rsa_pem(),
            "client_email": "me@p.iam.gserviceaccount.com",
            "token_uri": token_uri,
        })
        .to_string()
    }

    pub(crate) fn apns(key_file: PathBuf) -> PushAppSettings {
        PushAppSettings {
            topic: "com.example.chat".to_owned(),
            key_id: "KEY1".to_owned(),
            team_id: "TEAM1".to_owned(),
            key_file: Some(key_file),
            ..PushAppSettings::default()
        }
    }

    fn load(settings: PushAppSettings) -> Result<PushApps, String> {
        PushApps::load(&BTreeMap::from([("chat".to_owned(), settings)]))
    }

    #[test]
    fn files_are_read_and_what_is_wrong_is_said_without_what_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let key = file("key.p8", &ec_pem());
        let apps = load(apns(key.clone())).expect("all is there");
        let shown = format!("{apps:?}");
        assert!(shown.contains("com.example.chat") && !shown.contains("ApnsToken"), "{shown}");
        let account = file("account.json", &account_json("https://oauth2.example/token"));
        let fcm = |file: PathBuf| PushAppSettings {
            service: AppService::Fcm,
            service_account_file: Some(file),
            ..PushAppSettings::default()
        };
        assert!(load(fcm(account)).is_ok());
        let wrong = [
            (apns(file("rsa.p8", &rsa_pem())), "push.apps.chat.key_file"),
            (apns(folder.path().join("none")), "push.apps.chat.key_file"),
            (PushAppSettings { topic: String::new(), ..apns(key.clone()) }, "push.apps.chat.topic"),
            (PushAppSettings { team_id: String::new(), ..apns(key.clone()) }, "push.apps.chat.team_id"),
            (
                PushAppSettings { url: "http://a.example".to_owned(), ..apns(key.clone()) },
                "push.apps.chat.url",
            ),
            (
                PushAppSettings { certificate_file: Some(key.clone()), ..apns(key.clone()) },
                "push.apps.chat.certificate_file",
            ),
            (
                PushAppSettings { certificate_file: Some(key.clone()), key_file: None, ..apns(key) },
                "there is no certificate",
            ),
            (fcm(file("a.json", "{\"private_key\": 7}")), "push.apps.chat.service_account_file"),
            (fcm(file("b.json", &account_json("http://oauth2.example/token"))), "token_uri"),
        ];
        for (settings, at) in wrong {
            let error = load(settings).expect_err(at);
            assert!(error.contains(at) && !error.contains("PRIVATE"), "{error}");
        }
    }

    #[test]
    fn what_is_as_it_was_stays_and_a_key_with_other_contents_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key.p8");
        fs::write(&path, ec_pem()).expect("written");
        let first = load(apns(path.clone())).expect("it is there");
        let app = |apps: &PushApps| apps.named("chat").expect("it is there").clone();
        let same = load(apns(path.clone())).expect("it is there").keeping(&first);
        assert!(Arc::ptr_eq(&app(&first), &app(&same)));
        fs::write(&path, ec_pem()).expect("written");
        let other = load(apns(path)).expect("it is there").keeping(&same);
        assert!(!Arc::ptr_eq(&app(&same), &app(&other)));
    }
}

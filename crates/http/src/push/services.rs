//! The push services of makers of devices, one for each app: made when the app first has something to be pushed, and made anew when its settings change.

use super::apns::Apns;
use super::fcm::Fcm;
use super::message::Showing;
use super::rules::Came;
use crate::options::{Options, WebhookRoots};
use crate::push_settings::apps::{Credentials, PushApp, PushApps};
use carillon_core::model::{AppService, AppToken, Push};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The push services of apps.
pub(super) struct Services {
    /// The apps, the newest.
    apps: watch::Receiver<PushApps>,
    roots: WebhookRoots,
    timeout: Duration,
    /// Of the apps that had something to be pushed.
    made: Mutex<HashMap<Box<str>, Made>>,
}

/// A push service as it was made for an app.
#[derive(Clone)]
struct Made {
    app: Arc<PushApp>,
    service: Service,
}

#[derive(Clone)]
enum Service {
    Apns(Arc<Apns>),
    Fcm(Arc<Fcm>),
}

impl Services {
    pub(super) fn new(options: &Options) -> Services {
        Services {
            apps: options.push_apps.clone(),
            roots: options.webhook_roots.clone(),
            timeout: Duration::from_millis(options.settings.push.timeout_ms),
            made: Mutex::default(),
        }
    }

    /// The push service of the app of this name, if accounts of `domain` may use it.
    pub(super) fn of(&self, name: &str, domain: &str) -> Option<AppService> {
        let apps = self.apps.borrow();
        let settings = &apps.named(name)?.settings;
        let serves = settings.domains.is_empty() || settings.domains.iter().any(|served| served == domain);
        serves.then_some(settings.service)
    }

    /// Sends a push; what came of it, and whether the push service works.
    pub(super) async fn send(&self, push: &Push, device: &AppToken, showing: &Showing) -> (Came, bool) {
        match self.service(push, device) {
            Ok(Service::Apns(apns)) => apns.send(push, device, showing).await,
            Ok(Service::Fcm(fcm)) => fcm.send(push, device, showing).await,
            // An operator can mend it, and then it is sent.
            Err(error) => (Came::Failed(error.into(), None), true),
        }
    }

    fn service(&self, push: &Push, device: &AppToken) -> Result<Service, String> {
        let (name, domain) = (&device.app, push.registration.account.domain());
        match self.of(name, domain) {
            Some(service) if service == device.service => {}
            Some(_) => return Err(format!("the app `{name}` has another push service now")),
            None => return Err(format!("there is no app `{name}` for {domain}")),
        }
        let app = self.apps.borrow().named(name).cloned();
        let app = app.ok_or_else(|| format!("there is no app `{name}`"))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.get(name).filter(|made| Arc::ptr_eq(&made.app, &app)) {
            return Ok(made.service.clone());
        }
        let (roots, timeout) = (self.roots.clone(), self.timeout);
        let service = match &app.credentials {
            Credentials::Fcm(_) => Service::Fcm(Arc::new(Fcm::new(app.clone(), &roots, timeout)?)),
            _ => Service::Apns(Arc::new(Apns::new(app.clone(), roots, timeout)?)),
        };
        let apps = self.apps.borrow();
        made.retain(|name, _| apps.named(name).is_some());
        made.insert(name.clone(), Made { app, service: service.clone() });
        Ok(service)
    }
}

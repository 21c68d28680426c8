//! Devices that stay connected: each goes to the next node when its own is gone.

use super::super::{describe, ms};
use carillon_load::blocking::Client;
use carillon_load::client::tls::Trust;
use carillon_load::client::{ClientEvent, Options, Profile, Settings, StreamManagement};
use carillon_wire::jid::BareJid;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a device has to tell.
pub(super) struct News {
    /// Its number.
    pub(super) device: usize,
    pub(super) at: Instant,
    pub(super) what: What,
}

/// What happened to it.
pub(super) enum What {
    /// It has a session, by the node of this number.
    Connected(usize),
    /// Its stream is over.
    Lost,
    /// It was given something.
    Received(String),
}

/// Where the nodes take clients.
pub(super) type Ports = Arc<Mutex<Vec<u16>>>;

/// What may be told and not heard yet.
const NEWS_MAX: usize = 1024;
/// How long an attempt to log in may take: a home that is gone answers nothing.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a device waits for what comes before it looks again.
const IDLE: Duration = Duration::from_secs(60);

/// What devices tell.
pub(super) struct Told {
    news: Receiver<News>,
    pub(super) sender: SyncSender<News>,
}

impl Told {
    pub(super) fn new() -> Told {
        let (sender, news) = sync_channel(NEWS_MAX);
        Told { news, sender }
    }

    /// The next thing that is told before `deadline`.
    pub(super) fn next(&self, deadline: Instant) -> Option<News> {
        self.news.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }
}

/// Connects a device to the node of this number, and to the next one whenever its stream is over; it never ends.
pub(super) fn start(
    device: usize,
    jid: BareJid,
    secret: String,
    first: usize,
    ports: Ports,
    told: SyncSender<News>,
) {
    std::thread::spawn(move || {
        let settings =
            Settings { trust: Trust::Anyone, stream_management: StreamManagement::On, ..Settings::default() };
        let Ok(profile) = Profile::new(settings) else { return };
        let tell = |what| told.send(News { device, at: Instant::now(), what }).is_ok();
        let mut node = first;
        loop {
            let known = ports.lock().unwrap_or_else(PoisonError::into_inner).clone();
            node %= known.len();
            let options = Options::new(jid.clone(), secret.clone(), &profile).with_resource("demo");
            match Client::connect_within(("127.0.0.1", known[node]), options, ATTEMPT) {
                Ok(client) => {
                    if !tell(What::Connected(node)) || !listen(client, &tell) || !tell(What::Lost) {
                        return;
                    }
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
            node += 1;
        }
    });
}

/// Tells what comes until the stream is over; false if nobody hears it any more.
fn listen(mut client: Client, tell: &impl Fn(What) -> bool) -> bool {
    loop {
        match client.recv(IDLE) {
            Ok(Some(ClientEvent::Stanza(stanza))) => {
                if let Some((what, text)) = describe(&stanza)
                    && !tell(What::Received(format!("{what}  {text}")))
                {
                    return false;
                }
            }
            Ok(_) => {}
            Err(_) => return true,
        }
    }
}

/// How long after `from` something was.
pub(super) fn after(from: Instant, at: Instant) -> String {
    let time = at.saturating_duration_since(from);
    if time < Duration::from_secs(1) { ms(time) } else { format!("{:.1} s", time.as_secs_f64()) }
}

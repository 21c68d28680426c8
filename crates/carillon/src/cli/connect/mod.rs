//! `carillon connect`: a device in the terminal. It logs in as any device does, prints what comes, acknowledges it, and
//! returns when its connection is lost.

mod backoff;
mod incoming;
mod interrupt;
mod login;
mod place;
mod screen;
mod tokens;

use self::backoff::{Backoff, retry_after};
use self::incoming::Incoming;
use self::interrupt::Interrupt;
use self::login::{Device, Trouble};
use self::screen::Screen;
use super::failure::Failure;
use carillon_load::blocking::{Client, Received, StreamLost};
use carillon_load::client::{ClientEvent, stanzas};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// What `carillon connect` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Account to log in to, such as alice@localhost
    jid: String,
    /// Topic to subscribe to; may be given again
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Password of the account; without it, the token of an earlier login is used, or else the password is asked for
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Create the account first, where the domain lets anyone do so (XEP-0077)
    #[arg(long)]
    register: bool,
    /// Server to connect to; by default the node of the data folder, else the domain of the JID, whose SRV records are not looked up
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
    /// Use TLS from the first byte (port 5223) instead of STARTTLS (port 5222)
    #[arg(long)]
    direct_tls: bool,
    /// Certificates to trust (PEM): the server's own, or those of the authority that issued it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Check no certificate: anyone on the way can pose as the server
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Tell the server that the device is asleep: it gets no notification whose audience is `active`
    #[arg(long)]
    away: bool,
    /// Data folder of a node on this machine, which holds its address and its self-signed certificate
    #[arg(long, value_name = "DIR", default_value = "./data", env = "CARILLON_DATA_DIR")]
    data_dir: PathBuf,
    /// Folder that keeps the tokens of earlier logins; by default carillon in $XDG_STATE_HOME or ~/.local/state
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Silence of the server after which it is asked whether it is there. Longer than it waits itself (`ping.idle_ms`).
const SILENCE: Duration = Duration::from_secs(90);
/// How often it is asked for a subscription while it has no room.
const SUBSCRIBE_ATTEMPTS: u32 = 10;
/// How long it has to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Logs in and prints what comes, until a signal ends it.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let mut device = Device::new(args, &interrupt)?;
    let mut screen = Screen::new(out, args.json);
    let mut client = device.first_login(&mut screen)?;
    follow(&mut client, &args.topics, &interrupt, &mut screen)?;
    let mut backoff = Backoff::default();
    loop {
        let trouble = match stay(&mut client, &interrupt, &mut screen)? {
            Stay::Interrupted => {
                // It may be gone already: then there is nobody to say goodbye to.
                let _ = client.close(ANSWER);
                return screen.closed();
            }
            Stay::Lost(why) => device.lost(why),
        };
        // The connection is closed now, not after the pause: a server that ends its stream waits for that (RFC 6120 §4.4).
        drop(client);
        match come_back(&mut device, trouble, &mut backoff, &interrupt, &mut screen)? {
            Some(returned) => client = returned,
            None => return screen.closed(),
        }
    }
}

/// Logs in again, as often as it takes, unless that cannot help; none when a signal ends it.
fn come_back(
    device: &mut Device<'_>,
    mut trouble: Trouble,
    backoff: &mut Backoff,
    interrupt: &Interrupt,
    screen: &mut Screen<'_>,
) -> Result<Option<Client>, Failure> {
    loop {
        let (why, asked) = match trouble {
            Trouble::Fatal(failure) => return Err(failure),
            Trouble::Passing { why, retry_after } => (why, retry_after),
        };
        let pause = backoff.next(asked);
        interrupt.is_wanted(true);
        screen.lost(&why, pause)?;
        if interrupt.within(pause)? {
            return Ok(None);
        }
        match device.login(screen) {
            Ok(client) => {
                backoff.logged_in();
                return Ok(Some(client));
            }
            Err(again) => trouble = again,
        }
    }
}

/// How a session ended.
enum Stay {
    Interrupted,
    Lost(StreamLost),
}

/// Prints what comes for as long as the stream lasts.
fn stay(client: &mut Client, interrupt: &Interrupt, screen: &mut Screen<'_>) -> Result<Stay, Failure> {
    let mut asked = false;
    loop {
        let patience = if asked { ANSWER } else { SILENCE };
        match client.recv_or_interrupt(interrupt, patience) {
            Ok(Received::Event(event)) => {
                asked = false;
                if let ClientEvent::Stanza(stanza) = event
                    && let Err(lost) = take(client, &stanza, screen)?
                {
                    return Ok(Stay::Lost(lost));
                }
            }
            Ok(Received::Interrupted) => return Ok(Stay::Interrupted),
            Ok(Received::Nothing) if asked => return Ok(Stay::Lost(StreamLost::Timeout(SILENCE + ANSWER))),
            Ok(Received::Nothing) => {
                asked = true;
                if let Err(lost) = client.send(&stanzas::ping(None).with_id("are-you-there")) {
                    return Ok(Stay::Lost(lost));
                }
            }
            Err(lost) => return Ok(Stay::Lost(lost)),
        }
    }
}

/// Prints a stanza, or answers it where nobody is to see it.
fn take(
    client: &mut Client,
    stanza: &Stanza,
    screen: &mut Screen<'_>,
) -> Result<Result<(), StreamLost>, Failure> {
    match stanza.kind {
        // RFC 6120 §8.2.3: a request that is not understood is answered.
        Kind::Iq(IqType::Get | IqType::Set) => {
            let refusal = stanza.error_reply(&StanzaError::new(Condition::ServiceUnavailable));
            Ok(refusal.map_or(Ok(()), |refusal| client.send(&refusal)))
        }
        Kind::Iq(_) => Ok(Ok(())),
        _ => {
            // The device's own presence comes back to it.
            if stanza.from.as_ref() != Some(client.jid()) {
                screen.incoming(&Incoming::of(stanza))?;
            }
            Ok(Ok(()))
        }
    }
}

/// Subscribes to the topics that the account does not follow yet.
fn follow(
    client: &mut Client,
    topics: &[String],
    interrupt: &Interrupt,
    screen: &mut Screen<'_>,
) -> Result<(), Failure> {
    if topics.is_empty() {
        return Ok(());
    }
    let answer =
        client.iq(stanzas::subscriptions(service(client)), ANSWER).map_err(|error| not_subscribed(&error))?;
    let followed = stanzas::subscribed_nodes(&answer);
    for topic in topics {
        if !followed.contains(topic) {
            subscribe(client, topic, interrupt, screen)?;
        }
        screen.subscribed(topic)?;
    }
    Ok(())
}

/// Subscribes to a topic; again, not too often, while the server says when it may be asked again.
fn subscribe(
    client: &mut Client,
    topic: &str,
    interrupt: &Interrupt,
    screen: &mut Screen<'_>,
) -> Result<(), Failure> {
    let (service, subscriber) = (service(client), client.jid().clone());
    let mut attempts = 0;
    loop {
        attempts += 1;
        let request = stanzas::subscribe(service.clone(), topic, &subscriber);
        let answer = client.iq(request, ANSWER).map_err(|error| not_subscribed(&error))?;
        let Some(error) = stanzas::error(&answer) else { return Ok(()) };
        let wait = retry_after(error.app.as_ref()).filter(|wait| *wait <= ANSWER);
        let refusal = refused(topic, service.as_str(), &error);
        let Some(wait) = wait.filter(|_| attempts < SUBSCRIBE_ATTEMPTS) else { return Err(refusal) };
        screen.postponed(topic, &refusal.to_string(), wait)?;
        if interrupt.within(wait)? {
            return Err(refusal);
        }
    }
}

fn service(client: &Client) -> Jid {
    client.jid().bare().service("pubsub")
}

fn not_subscribed(error: &StreamLost) -> Failure {
    Failure::Refused(format!("cannot subscribe: {error}"))
}

/// Why a topic cannot be followed, and what helps.
fn refused(topic: &str, service: &str, error: &StanzaError) -> Failure {
    let shown = super::output::printable(topic);
    Failure::Refused(match error.condition {
        Condition::ItemNotFound => {
            format!("{service} has no topic {shown}: create it with `carillon topic create {shown}`")
        }
        Condition::NotAllowed | Condition::Forbidden | Condition::NotAuthorized => {
            format!("the topic {shown} does not let this account subscribe: its access model is `whitelist`")
        }
        _ => format!("cannot subscribe to {shown}: {error}"),
    })
}

/// A JSON container, as the server's payloads come in (XEP-0335).
const JSON: (&str, &str) = ("json", ns::JSON);

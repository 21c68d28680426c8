//! The login: by a token of an earlier one, else by the password, and what a person is told when it fails.

use super::Args;
use super::backoff::retry_after;
use super::interrupt::Interrupt;
use super::place::{self, Place};
use super::screen::{LoggedIn, Screen};
use super::tokens::{TokenFile, state_folder};
use crate::cli::client::{Client as Api, Query};
use crate::cli::failure::Failure;
use crate::cli::output::printable;
use crate::cli::password;
use crate::files::{AdminKey, NodeFile};
use crate::web::segment;
use carillon_load::blocking::{Client, ConnectError, StreamLost};
use carillon_load::client::sasl::Mechanism;
use carillon_load::client::tls::Trust;
use carillon_load::client::{
    self, AuthFailure, ClientEvent, End, InitialPresence, Options, Profile, Settings, StreamManagement,
    Transport,
};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stream::Condition;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the resource of a session begins with, unless the JID has one.
const RESOURCE: &str = "terminal";

/// An account, and how it connects.
pub(super) struct Device<'a> {
    interrupt: &'a Interrupt,
    jid: BareJid,
    resource: String,
    /// None while a token is enough.
    password: Option<String>,
    register: bool,
    place: Place,
    profile: Arc<Profile>,
    tokens: Option<TokenFile>,
    data_dir: PathBuf,
    insecure: bool,
}

/// Why a device is not connected.
pub(super) enum Trouble {
    /// Trying again does not help.
    Fatal(Failure),
    /// It may be over soon.
    Passing {
        why: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
}

impl Trouble {
    fn passing(why: String) -> Trouble {
        Trouble::Passing { why, retry_after: None }
    }
}

impl Device<'_> {
    /// The device that the command line describes.
    pub(super) fn new<'a>(args: &Args, interrupt: &'a Interrupt) -> Result<Device<'a>, Failure> {
        let jid: Jid = args.jid.parse().map_err(|e| Failure::Usage(format!("{}: {e}", args.jid)))?;
        if jid.local().is_none() {
            return Err(Failure::Usage(format!("{jid}: write the whole JID, such as alice@localhost")));
        }
        let place = Place::find(args, &jid.bare())?;
        // A node of this machine keeps its tokens' secret in its folder, whatever port it has today.
        let server = match place.local {
            true => std::fs::canonicalize(&args.data_dir)?.display().to_string(),
            false => place.to_string(),
        };
        let folder = args.state_dir.clone().or_else(state_folder);
        let tokens = folder.map(|folder| TokenFile::new(folder, jid.bare_str(), &server));
        let profile = Profile::new(settings(args)?).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut password = args.password.clone();
        if let Some(file) = &args.password_file {
            password = Some(password::from_file(file)?);
        }
        Ok(Device {
            interrupt,
            resource: jid.resource().unwrap_or(RESOURCE).to_owned(),
            jid: jid.bare(),
            password,
            register: args.register,
            place,
            profile,
            tokens,
            data_dir: args.data_dir.clone(),
            insecure: args.insecure,
        })
    }

    /// Logs in for the first time: what fails now is an error, and a password that is missing is asked for.
    pub(super) fn first_login(&mut self, screen: &mut Screen<'_>) -> Result<Client, Failure> {
        let with_token = !self.register && self.has_token();
        if self.password.is_none() && !with_token {
            self.password = Some(password::given_or_asked(None)?);
        }
        let failure = match self.login(screen) {
            Ok(client) => return Ok(client),
            Err(Trouble::Passing { why, retry_after }) => return Err(self.not_now(&why, retry_after)),
            Err(Trouble::Fatal(failure)) => failure,
        };
        if self.password.is_some() || self.has_token() || !password::can_ask() {
            return Err(failure);
        }
        // The token was refused, and somebody is there to be asked.
        eprintln!("carillon: {failure}");
        self.password = Some(password::given_or_asked(None)?);
        match self.login(screen) {
            Ok(client) => Ok(client),
            Err(Trouble::Fatal(failure)) => Err(failure),
            Err(Trouble::Passing { why, retry_after }) => Err(self.not_now(&why, retry_after)),
        }
    }

    /// Logs in.
    pub(super) fn login(&mut self, screen: &mut Screen<'_>) -> Result<Client, Trouble> {
        self.find_node();
        self.fetch_token();
        let password = self.password.clone().unwrap_or_default();
        let options = Options::new(self.jid.clone(), password, &self.profile)
            .with_resource(self.resource.as_str())
            .with_registration(self.register);
        let begun = Instant::now();
        // A login under way is not worth an orderly end.
        self.interrupt.is_wanted(false);
        let connected = Client::connect((self.place.host.as_str(), self.place.port), options);
        self.interrupt.is_wanted(connected.is_ok());
        self.store_token();
        let mut client = connected.map_err(|error| match error {
            ConnectError::Ended(end) => self.ended(end),
            other => Trouble::passing(format!("{}: {other}", self.place)),
        })?;
        self.register = false;
        self.report(&mut client, begun.elapsed(), screen).map_err(Trouble::Fatal)?;
        Ok(client)
    }

    /// Why a session ended, to be told, and whether to come back.
    pub(super) fn lost(&self, lost: StreamLost) -> Trouble {
        match lost {
            StreamLost::Ended(end) => self.ended(end),
            other => Trouble::passing(other.to_string()),
        }
    }

    /// Prints how the login went.
    fn report(&self, client: &mut Client, took: Duration, screen: &mut Screen<'_>) -> Result<(), Failure> {
        let (mut tls, mut mechanism) = (String::new(), Mechanism::Plain);
        while let Ok(Some(event)) = client.recv(Duration::ZERO) {
            match event {
                ClientEvent::Registered => screen.registered(self.jid.as_str())?,
                ClientEvent::Secured(security) => tls = security.version.replace("TLSv1_", "TLS 1."),
                ClientEvent::Authenticated { mechanism: by } => mechanism = by,
                ClientEvent::Ready => break,
                _ => {}
            }
        }
        let by_token = matches!(mechanism, Mechanism::HtSha256Expr | Mechanism::HtSha256None);
        let jid = client.jid().to_string();
        screen.logged_in(&LoggedIn { jid, mechanism: mechanism.name(), by_token, tls, took })
    }

    /// A node of this machine may have come back on another port.
    fn find_node(&mut self) {
        let direct_tls = self.profile.settings().transport == Transport::DirectTls;
        if self.place.local
            && let Ok(Some(place)) = Place::of_node(&self.data_dir, direct_tls)
        {
            self.place = place;
        }
    }

    fn has_token(&self) -> bool {
        self.tokens.as_ref().is_some_and(|tokens| matches!(tokens.peek(), Ok(true)))
    }

    fn fetch_token(&self) {
        let Some(tokens) = &self.tokens else { return };
        match tokens.take_turn() {
            Ok(Some(token)) => self.profile.tokens().restore(&self.jid, token),
            Ok(None) => {}
            Err(error) => eprintln!("carillon: login tokens cannot be read: {error}"),
        }
    }

    fn store_token(&self) {
        let Some(tokens) = &self.tokens else { return };
        if let Err(error) = tokens.keep(self.profile.tokens().save(&self.jid)) {
            eprintln!("carillon: login tokens cannot be kept: {error}");
        }
    }

    fn ended(&self, end: End) -> Trouble {
        let place = &self.place;
        let refused = |why: String| Trouble::Fatal(Failure::Refused(why));
        match end {
            End::Failure(client::Failure::Auth(failure)) => self.not_authenticated(&failure),
            End::Failure(client::Failure::Stream(error)) => match error.condition {
                // A server that does not offer registration wants to be logged in to.
                Condition::NotAuthorized if self.register => {
                    refused(self.not_registered("it is not offered"))
                }
                Condition::Conflict => {
                    refused("another login of the account took this one's place".to_owned())
                }
                Condition::NotAuthorized => {
                    refused(format!("the server ended the session: {}", client::Failure::Stream(error)))
                }
                Condition::HostUnknown | Condition::HostGone => refused(format!(
                    "{place} does not serve the domain {}: create it with `carillon domain create {}`, or give --server",
                    self.jid.domain(),
                    self.jid.domain()
                )),
                _ => Trouble::Passing {
                    retry_after: retry_after(error.app.as_deref()),
                    why: client::Failure::Stream(error).to_string(),
                },
            },
            End::Failure(client::Failure::Tls(error)) => refused(format!(
                "the TLS handshake with {place} failed: {error}; {}",
                match self.insecure {
                    true => "does the port speak TLS?",
                    false =>
                        "if its certificate is not one that this system trusts, give it as --ca FILE, or the data folder \
                         of its node as --data-dir",
                }
            )),
            End::Failure(client::Failure::Registration(error)) => {
                refused(self.not_registered(&error.to_string()))
            }
            End::Failure(
                failure @ (client::Failure::NoMechanism { .. }
                | client::Failure::TlsNotOffered
                | client::Failure::TlsRefused
                | client::Failure::ServerName(_)
                | client::Failure::NotOffered(_)),
            ) => refused(format!("{place}: {failure}")),
            other => Trouble::passing(other.to_string()),
        }
    }

    fn not_registered(&self, why: &str) -> String {
        let (jid, domain) = (&self.jid, self.jid.domain());
        format!(
            "the account {jid} cannot be registered: {why}; an operator lets devices register with `carillon domain set \
             {domain} --registration true`, or creates the account with `carillon account create {jid}`"
        )
    }

    fn not_authenticated(&self, failure: &AuthFailure) -> Trouble {
        let jid = &self.jid;
        let said = failure.text.as_deref().map(|text| format!(" ({})", printable(text))).unwrap_or_default();
        let why = match failure.condition.as_str() {
            "temporary-auth-failure" => return Trouble::passing(failure.to_string()),
            "account-disabled" => format!("the account {jid} is disabled{said}"),
            _ if self.password.is_none() => {
                format!("the token of the last login of {jid} is not valid any more{said}: give the password")
            }
            "not-authorized" => match self.exists() {
                Some(true) => format!("the password of {jid} is wrong{said}"),
                Some(false) => {
                    format!("there is no account {jid}: create it with `carillon account create {jid}`")
                }
                None => format!(
                    "the password is wrong, or there is no account {jid}{said}; an operator creates one with `carillon \
                     account create {jid}`"
                ),
            },
            _ => format!("the server refuses the login of {jid}: {failure}"),
        };
        Trouble::Fatal(Failure::Refused(why))
    }

    /// Whether the account is there, where the node of this machine can be asked. The server itself tells nobody.
    fn exists(&self) -> Option<bool> {
        let node = NodeFile::read(&self.data_dir).ok()?.filter(|_| self.place.local)?;
        let key = AdminKey::read(&self.data_dir).ok()?;
        let local = segment(self.jid.local()?);
        let path = Query::of(format!("/v1/devices/{local}")).with("domain", self.jid.domain());
        match Api::new(&node.http, key.as_str()).get(&path.0) {
            Ok(_) => Some(true),
            Err(Failure::Missing(_)) => Some(false),
            Err(_) => None,
        }
    }

    /// Why the node of this machine is not ready, in its own words, where it can be asked.
    fn node_says(&self) -> Option<String> {
        let node = NodeFile::read(&self.data_dir).ok()?.filter(|_| self.place.local)?;
        match Api::new(&node.http, "").get("/readyz") {
            Err(Failure::Refused(said)) => Some(said),
            _ => None,
        }
    }

    fn not_now(&self, why: &str, retry_after: Option<Duration>) -> Failure {
        if let Some(wait) = retry_after {
            let (place, seconds) = (&self.place, wait.as_secs());
            return Failure::Refused(format!("{place}: {why}; try again in {seconds} s"));
        }
        if let Some(said) = self.node_says() {
            return Failure::Refused(format!(
                "the node of {} takes no login: {said}",
                self.data_dir.display()
            ));
        }
        let hint = match self.place.local {
            true => format!("; is the node of {} still running?", self.data_dir.display()),
            false => "; start a node with `carillon serve`, or give --server HOST:PORT".to_owned(),
        };
        Failure::Unreachable(format!("{why}{hint}"))
    }
}

/// How the device connects and behaves.
fn settings(args: &Args) -> Result<Settings, Failure> {
    let trust = place::trust(args)?;
    let mut mechanisms = Mechanism::ALL.to_vec();
    if matches!(trust, Trust::Anyone) {
        // Whoever poses as the server must not be told the password.
        mechanisms.retain(|mechanism| *mechanism != Mechanism::Plain);
    }
    Ok(Settings {
        transport: if args.direct_tls { Transport::DirectTls } else { Transport::StartTls },
        trust,
        mechanisms,
        tls_resumption: true,
        sasl2: true,
        fast: true,
        stream_management: StreamManagement::On,
        presence: if args.away { InitialPresence::Away } else { InitialPresence::Available },
        receipts: true,
        ..Settings::default()
    })
}

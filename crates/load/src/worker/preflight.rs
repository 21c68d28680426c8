//! Checks before the first player connects: that a login succeeds, and that the target has what the scenario needs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use carillon_wire::ns;
use carillon_wire::stanza::Stanza;

use super::api::{Api, CallError};
use super::publisher;
use super::setup::{Setup, at_target, lacks, worker};
use crate::blocking::{Client, ConnectError, StreamLost};
use crate::client::{ClientEvent, End, Failure, Options, stanzas};
use crate::control::Fault;
use crate::light;
use crate::plan::{Action, Protocol, PublishMethod};
use crate::report::{MORE_REGISTRATIONS, remedy};

/// The time limit of the probe's login and of each answer to it.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Checks every node of the target to which a player of this worker connects.
pub(super) fn check(setup: &Setup) -> Result<(), Fault> {
    if setup.job.count == 0 {
        return Ok(());
    }
    let needs = Needs::of(setup);
    let nodes = setup.addresses.len() as u32;
    for number in (setup.job.first..).take(setup.job.count.min(nodes) as usize) {
        let address = setup.addresses[(number % nodes) as usize];
        match setup.job.scenario.players.protocol {
            // Players of matches have no accounts.
            Protocol::Xmpp if setup.job.scenario.first_login().is_none() && needs.plays => {}
            Protocol::Xmpp => {
                let options = setup.options(number as usize, true).with_limit_asked();
                let mut probe = log_in(setup, options, address)?;
                check_registrations(setup, &mut probe)?;
                if needs.pubsub {
                    check_pubsub(setup, &mut probe)?;
                }
                // Whether the server closes its stream in time does not matter.
                let _ = probe.close(Duration::from_secs(1));
            }
            Protocol::Light => greet(address)?,
        }
    }
    // The publisher is one account, which connects to the first node.
    if let Some(address) = setup.addresses.first().filter(|_| needs.publisher) {
        let _ = log_in(setup, setup.publisher()?, *address)?.close(Duration::from_secs(1));
    }
    if needs.http { check_http(setup) } else { Ok(()) }
}

/// What a scenario needs besides accounts.
struct Needs {
    pubsub: bool,
    /// Its account logs in.
    publisher: bool,
    http: bool,
    /// It plays matches.
    plays: bool,
}

impl Needs {
    fn of(setup: &Setup) -> Self {
        let scenario = &setup.job.scenario;
        let actions = || scenario.phases.iter().map(|phase| &phase.action);
        let follows = actions().any(|action| matches!(action, Action::Subscribe { .. } | Action::Publish(_)));
        let by_http = |action: &Action| match action {
            Action::Publish(publish) => setup.job.publishes && publish.by == PublishMethod::Http,
            Action::Subscribe { topic } => {
                setup.job.publishes && publisher::publish_method(setup, topic) == PublishMethod::Http
            }
            Action::Notify(_) | Action::Play(_) => true,
            _ => false,
        };
        let is_xmpp = scenario.players.protocol == Protocol::Xmpp;
        let by_pubsub = |action: &Action| match action {
            Action::Publish(publish) => publish.by == PublishMethod::Pubsub,
            Action::Subscribe { topic } => publisher::publish_method(setup, topic) == PublishMethod::Pubsub,
            _ => false,
        };
        let publisher = is_xmpp && setup.job.publishes && actions().any(by_pubsub);
        let plays = actions().any(|action| matches!(action, Action::Play(_)));
        Self { pubsub: follows && is_xmpp, publisher, http: actions().any(by_http), plays }
    }
}

fn log_in(setup: &Setup, options: Options, address: SocketAddr) -> Result<Client, Fault> {
    let account = options.jid.clone();
    Client::connect_within(address, options, TIMEOUT).map_err(|error| {
        at_target(match error {
            ConnectError::Connect(error) => {
                format!("{address} cannot be reached: {}", error.kind())
            }
            ConnectError::Timeout(_) => {
                format!("{address} did not complete the login of {account} within {TIMEOUT:?}")
            }
            ConnectError::Io(error) => format!("{address} closed the connection: {}", error.kind()),
            ConnectError::Ended(end) => {
                let registers = setup.job.scenario.players.register;
                format!("{address} refused the login of {account}: {}", explain(&end, registers))
            }
        })
    })
}

/// Whether the server lets one address register as many accounts as this worker needs at each node: otherwise some of the players are refused, however
/// long the test takes.
fn check_registrations(setup: &Setup, probe: &mut Client) -> Result<(), Fault> {
    let needed = setup.job.count.div_ceil(setup.addresses.len().max(1) as u32);
    // Those of the login came with it.
    while let Ok(Some(event)) = probe.recv(Duration::ZERO) {
        if let ClientEvent::RegistrationLimit { accounts, seconds } = event
            && needed > accounts
        {
            return Err(at_target(format!(
                "the server lets one address register {accounts} accounts in {seconds} s, and {needed} players are to be \
                 registered. {MORE_REGISTRATIONS}"
            )));
        }
    }
    Ok(())
}

/// Waits for the greeting of the light protocol.
fn greet(address: SocketAddr) -> Result<(), Fault> {
    let reached = TcpStream::connect_timeout(&address, TIMEOUT);
    let mut socket =
        reached.map_err(|error| at_target(format!("{address} cannot be reached: {}", error.kind())))?;
    let no = |why: String| lacks("the light protocol", format!("{address} {why}"));
    let (mut client, mut out) = (light::Client::default(), light::Outbox::default());
    client.start(&mut out);
    let opened = socket.set_read_timeout(Some(TIMEOUT)).and_then(|()| socket.write_all(&out.bytes));
    opened.map_err(|error| no(format!("does not accept the opening: {}", error.kind())))?;
    let mut buffer = [0; 4096];
    while !client.is_ready() {
        match socket.read(&mut buffer) {
            Ok(0) => client.receive_end(&mut out),
            Ok(length) => client.receive(&buffer[..length], &mut out),
            Err(error) => return Err(no(format!("sends no greeting: {}", error.kind()))),
        }
        match out
            .events
            .iter()
            .find(|event| matches!(event, light::LightEvent::Closed(_) | light::LightEvent::Error(_)))
        {
            Some(light::LightEvent::Closed(end)) => return Err(no(format!("sends no greeting: {end}"))),
            Some(light::LightEvent::Error(code)) => return Err(no(format!("refuses: {code}"))),
            _ => {}
        }
    }
    Ok(())
}

/// Why a login failed, in words for the report.
fn explain(end: &End, registers: bool) -> String {
    match end {
        End::Failure(Failure::Auth(failure)) if failure.condition == "not-authorized" => {
            let why = "the server does not accept its password, or does not know the account";
            if registers { why.to_owned() } else { format!("{why}; --register registers the accounts first") }
        }
        End::Failure(Failure::NotOffered("registration")) => {
            "the server does not offer in-band registration. Carillon: registration.in_band=true allows it"
                .to_owned()
        }
        End::Failure(Failure::Tls(error)) => format!("its certificate or TLS is not accepted: {error}"),
        End::Failure(Failure::Registration(error)) => {
            let what_to_do = remedy(&end.kind(), 1).map(|words| format!(". {words}")).unwrap_or_default();
            format!("in-band registration of the account failed: {}{what_to_do}", stanzas::refusal(error))
        }
        other => other.to_string(),
    }
}

fn check_pubsub(setup: &Setup, probe: &mut Client) -> Result<(), Fault> {
    let service = &setup.service;
    let no = |why: String| Err(lacks("pubsub", format!("{service} {why}")));
    let answer: Result<Stanza, StreamLost> = probe.iq(stanzas::disco_info(service.clone()), TIMEOUT);
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return no(format!("does not answer service discovery: {error}")),
    };
    if let Some(error) = stanzas::error(&answer) {
        return no(format!("does not answer service discovery: {}", error.condition));
    }
    let query = answer.payload.find("query", ns::DISCO_INFO).map(|query| query.element());
    let is_pubsub = query.is_some_and(|query| {
        query.children().any(|child| match child.name() {
            "identity" => child.attr("category") == Some("pubsub"),
            "feature" => child.attr("var").is_some_and(|var| var.starts_with(ns::PUBSUB)),
            _ => false,
        })
    });
    if is_pubsub { Ok(()) } else { no("is not a pubsub service".to_owned()) }
}

fn check_http(setup: &Setup) -> Result<(), Fault> {
    let (apis, actions) = (setup.job.target.apis(), &setup.job.scenario.phases);
    if apis.is_empty() {
        return Err(lacks("the HTTP API", "pass --http and --key"));
    }
    if apis.len() > 1 && actions.iter().any(|phase| matches!(phase.action, Action::Notify(_))) {
        return Err(worker("notifications are sent through one HTTP API, and several were given"));
    }
    apis.into_iter().try_for_each(|(url, key)| check_api(setup, url, key))
}

fn check_api(setup: &Setup, url: &str, key: &str) -> Result<(), Fault> {
    Api::new(url, key, &setup.job.target.domain).check().map_err(|error| match error {
        CallError::Refused { status: 401, .. } => {
            at_target(format!("the API at {url} does not accept the key"))
        }
        CallError::Refused { status: 403, .. } => {
            at_target(format!("the API at {url} does not give the key the rights it needs"))
        }
        CallError::Refused { status, .. } => {
            lacks("the HTTP API", format!("{url} answers {status}; it is not Carillon's API"))
        }
        CallError::Network(why) => at_target(format!("the API at {url} cannot be reached: {why}")),
    })
}

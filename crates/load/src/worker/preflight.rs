//! Before anyone is connected: one probe finds out whether players get in, and whether what the scenario needs is there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use carillon_wire::ns;
use carillon_wire::stanza::Stanza;

use super::api::Api;
use super::publisher;
use super::setting::{Setting, at_target, lacks, worker};
use crate::blocking::{Client, ConnectError, StreamLost};
use crate::client::{End, Failure, stanzas};
use crate::control::Fault;
use crate::light;
use crate::plan::{By, Deed, Protocol};

/// How long the probe's login, and each answer to it, may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Checks the target, every node of it that one of this worker's players is dealt to.
pub(super) fn check(setting: &Setting) -> Result<(), Fault> {
    if setting.job.count == 0 {
        return Ok(());
    }
    let needs = Needs::of(setting);
    let nodes = setting.addresses.len() as u32;
    for number in (setting.job.first..).take(setting.job.count.min(nodes) as usize) {
        let address = setting.addresses[(number % nodes) as usize];
        match setting.job.scenario.players.protocol {
            Protocol::Xmpp => {
                let mut probe = log_in(setting, number, address)?;
                if needs.pubsub {
                    check_pubsub(setting, &mut probe)?;
                }
                // Whether it says farewell in time is of no interest.
                let _ = probe.close(Duration::from_secs(1));
            }
            Protocol::Light => greet(address)?,
        }
    }
    if needs.http { check_http(setting) } else { Ok(()) }
}

/// What a scenario needs besides accounts.
struct Needs {
    pubsub: bool,
    http: bool,
}

impl Needs {
    fn of(setting: &Setting) -> Self {
        let scenario = &setting.job.scenario;
        let deeds = || scenario.phases.iter().map(|phase| &phase.deed);
        let follows = deeds().any(|deed| matches!(deed, Deed::Subscribe { .. } | Deed::Publish(_)));
        let by_http = |deed: &Deed| match deed {
            Deed::Publish(publish) => setting.job.publishes && publish.by == By::Http,
            Deed::Subscribe { topic } => {
                setting.job.publishes && publisher::means(setting, topic) == By::Http
            }
            Deed::Notify(_) => true,
            _ => false,
        };
        Self { pubsub: follows && scenario.players.protocol == Protocol::Xmpp, http: deeds().any(by_http) }
    }
}

fn log_in(setting: &Setting, number: u32, address: SocketAddr) -> Result<Client, Fault> {
    let options = setting.options(number as usize, true);
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
                format!("{address} refused the login of {account}: {}", explain(&end))
            }
        })
    })
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
            .find(|event| matches!(event, light::Event::Closed(_) | light::Event::Error(_)))
        {
            Some(light::Event::Closed(end)) => return Err(no(format!("sends no greeting: {end}"))),
            Some(light::Event::Error(code)) => return Err(no(format!("refuses: {code}"))),
            _ => {}
        }
    }
    Ok(())
}

/// Why a login failed, and what may help.
fn explain(end: &End) -> String {
    match end {
        End::Failure(Failure::Auth(failure)) if failure.condition == "not-authorized" => {
            "the server does not accept its password, or does not know the account".to_owned()
        }
        End::Failure(Failure::Tls(error)) => format!("its certificate or TLS is not accepted: {error}"),
        End::Failure(Failure::Registration(error)) => {
            format!("in-band registration of the account failed: {error}")
        }
        other => other.to_string(),
    }
}

fn check_pubsub(setting: &Setting, probe: &mut Client) -> Result<(), Fault> {
    let service = &setting.service;
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

fn check_http(setting: &Setting) -> Result<(), Fault> {
    let (apis, deeds) = (setting.job.target.apis(), &setting.job.scenario.phases);
    if apis.is_empty() {
        return Err(lacks("the HTTP API", "pass --http and --key"));
    }
    if apis.len() > 1 && deeds.iter().any(|phase| matches!(phase.deed, Deed::Notify(_))) {
        return Err(worker("notifications are sent through one HTTP API, and several were given"));
    }
    apis.into_iter().try_for_each(|(url, key)| check_api(setting, url, key))
}

fn check_api(setting: &Setting, url: &str, key: &str) -> Result<(), Fault> {
    Api::new(url, key, &setting.job.target.domain).check().map_err(|error| match error {
        ureq::Error::StatusCode(401) => at_target(format!("the API at {url} does not accept the key")),
        ureq::Error::StatusCode(403) => {
            at_target(format!("the API at {url} does not give the key the rights it needs"))
        }
        ureq::Error::StatusCode(status) => {
            lacks("the HTTP API", format!("{url} answers {status}; it is not Carillon's API"))
        }
        error => at_target(format!("the API at {url} cannot be reached: {error}")),
    })
}

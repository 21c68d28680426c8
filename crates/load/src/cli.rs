//! The command line of the load tester.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_wire::jid::{BareJid, Jid};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::client::sasl::{KeyCache, Mechanism};
use crate::client::tls::Trust;
use crate::client::{Options, Profile, Settings, StreamManagement, Transport};
use crate::measure::Processes;
use crate::report::Report;
use crate::scenario::fanout::Fanout;
use crate::scenario::login_storm::LoginStorm;
use crate::scenario::one_to_one::OneToOne;
use crate::scenario::{Population, Publisher, Ramp, RunError, resolve};

/// Measures an XMPP server from outside, with many real clients.
#[derive(Debug, Parser)]
#[command(name = "carillon-load", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everyone logs in, as fast as they may
    LoginStorm(LoginStormArgs),
    /// Everyone logs in, stays and does nothing
    Idle(IdleArgs),
    /// One item a round goes to every subscriber of a topic
    Fanout(Box<FanoutArgs>),
    /// Pairs throw a message to and fro
    OneToOne(OneToOneArgs),
}

/// Where to connect to, and how.
#[derive(Debug, Args)]
struct TargetArgs {
    /// The server
    #[arg(long, value_name = "HOST:PORT")]
    target: String,
    /// The domain of the accounts
    #[arg(long)]
    domain: String,
    /// Accounts are named by this and a number
    #[arg(long, default_value = "u")]
    user_prefix: String,
    /// The number of the first account
    #[arg(long, default_value_t = 0)]
    user_start: usize,
    /// The password of all accounts
    #[arg(long)]
    password: String,
    /// Logins a second; as fast as they complete if not given
    #[arg(long)]
    rate: Option<f64>,
    /// Logins under way at once
    #[arg(long, default_value_t = 128)]
    in_flight: usize,
    /// What carries the stream
    #[arg(long, value_enum, default_value_t = TransportArg::Starttls)]
    transport: TransportArg,
    /// Path of the WebSocket endpoint
    #[arg(long, default_value = "/xmpp-websocket")]
    websocket_path: String,
    /// Accept this SASL mechanism only; may be given more than once, the preferred first
    #[arg(long)]
    mechanism: Vec<Mechanism>,
    /// Log in by SASL2 and Bind 2 if the server offers them
    #[arg(long)]
    sasl2: bool,
    /// Ask for stream management
    #[arg(long)]
    sm: bool,
    /// Answer requests for delivery receipts
    #[arg(long)]
    receipts: bool,
    /// Resume TLS sessions by ticket
    #[arg(long)]
    tls_resumption: bool,
    /// Trust only this PEM file's certificates; without it any certificate is accepted
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// Remember keys derived from passwords in this file, for the next run; it is as secret as the passwords
    #[arg(long, value_name = "FILE")]
    key_cache: Option<String>,
    /// Threads to spread the clients over
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// A process of the server, to measure; may be given more than once
    #[arg(long, value_name = "PID")]
    server_pid: Vec<u32>,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    deadline: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TransportArg {
    /// TCP with STARTTLS
    Starttls,
    /// TLS from the first byte
    Tls,
    /// WebSocket
    Ws,
    /// WebSocket in TLS
    Wss,
    /// TCP without TLS
    Plain,
}

#[derive(Debug, Args)]
struct LoginStormArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How many log in
    #[arg(long)]
    players: usize,
    /// Measure memory so many seconds after the last login
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    settle: f64,
}

#[derive(Debug, Args)]
struct IdleArgs {
    #[command(flatten)]
    storm: LoginStormArgs,
    /// Stay for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    hold: f64,
}

#[derive(Debug, Args)]
struct FanoutArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How many receive
    #[arg(long)]
    subscribers: usize,
    /// The topic
    #[arg(long)]
    topic: String,
    /// The pubsub service; `pubsub.` and the domain if not given
    #[arg(long)]
    service: Option<String>,
    /// Everyone is subscribed already
    #[arg(long)]
    no_subscribe: bool,
    /// Items to publish, one after the other
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Bytes of an item's payload
    #[arg(long, default_value_t = 400)]
    payload: usize,
    /// Seconds a round may take
    #[arg(long, default_value_t = 60.0)]
    round_timeout: f64,
    #[command(flatten)]
    publisher: PublisherArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct PublisherArgs {
    /// Publish as this account, by XEP-0060
    #[arg(long, requires = "publisher_password", conflicts_with_all = ["http", "key"])]
    publisher_jid: Option<String>,
    /// Its password
    #[arg(long)]
    publisher_password: Option<String>,
    /// The publisher creates the topic first
    #[arg(long)]
    create: bool,
    /// Publish by the API at this URL
    #[arg(long, value_name = "URL", requires = "key")]
    http: Option<String>,
    /// A key of the API
    #[arg(long, env = "CARILLON_KEY", hide_env_values = true)]
    key: Option<String>,
}

#[derive(Debug, Args)]
struct OneToOneArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How many pairs
    #[arg(long)]
    pairs: usize,
    /// Talk for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    duration: f64,
    /// Bytes of a message's body
    #[arg(long, default_value_t = 100)]
    payload: usize,
}

/// Runs what the command line asks for, and prints the report. The code is 0 if all went well, 1 if not.
pub fn run(cli: &Cli) -> ExitCode {
    let json = cli.json;
    match report(&cli.command) {
        Ok(report) => {
            if json {
                println!("{}", report.json());
            } else {
                print!("{report}");
            }
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            if json {
                println!("{}", serde_json::json!({ "error": error.to_string() }));
            }
            eprintln!("carillon-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(command: &Command) -> Result<Report, RunError> {
    let target = command.target();
    let keys = target.read_keys()?;
    let report = match command {
        Command::LoginStorm(args) => args.scenario(None, &keys)?.run(),
        Command::Idle(args) => args.storm.scenario(Some(seconds(args.hold)), &keys)?.run(),
        Command::OneToOne(args) => OneToOne {
            population: target.population(args.pairs * 2, &keys)?,
            duration: seconds(args.duration),
            payload_bytes: args.payload,
            server: target.server()?,
        }
        .run(),
        Command::Fanout(args) => args.run(&keys),
    };
    target.write_keys(&keys)?;
    report
}

impl Command {
    fn target(&self) -> &TargetArgs {
        match self {
            Self::LoginStorm(args) => &args.target,
            Self::Idle(args) => &args.storm.target,
            Self::Fanout(args) => &args.target,
            Self::OneToOne(args) => &args.target,
        }
    }
}

impl LoginStormArgs {
    fn scenario(&self, hold: Option<Duration>, keys: &Arc<KeyCache>) -> Result<LoginStorm, RunError> {
        Ok(LoginStorm {
            population: self.target.population(self.players, keys)?,
            server: self.target.server()?,
            settle: seconds(self.settle),
            hold,
        })
    }
}

impl FanoutArgs {
    fn run(&self, keys: &Arc<KeyCache>) -> Result<Report, RunError> {
        let service = self.service.clone().unwrap_or_else(|| format!("pubsub.{}", self.target.domain));
        let service = jid(&service, Jid::new)?;
        let population = self.target.population(self.subscribers, keys)?;
        let publisher = self.publisher(&population, &service)?;
        Fanout {
            population,
            service,
            topic: self.topic.clone(),
            subscribe: !self.no_subscribe,
            rounds: self.rounds,
            payload_bytes: self.payload,
            round_timeout: seconds(self.round_timeout),
            server: self.target.server()?,
        }
        .run(publisher)
    }

    fn publisher(&self, population: &Population, service: &Jid) -> Result<Publisher, RunError> {
        let args = &self.publisher;
        if let (Some(url), Some(key)) = (&args.http, &args.key) {
            return Ok(Publisher::http(url, key, &self.topic));
        }
        let account = jid(args.publisher_jid.as_deref().unwrap_or_default(), BareJid::new)?;
        let password = args.publisher_password.clone().unwrap_or_default();
        let options = Options::new(account, password, &population.profile).with_resource("publisher");
        Ok(Publisher::xmpp(population.target, options, service.clone(), &self.topic, args.create)??)
    }
}

impl TargetArgs {
    fn population(&self, count: usize, keys: &Arc<KeyCache>) -> Result<Population, RunError> {
        Ok(Population {
            target: resolve(&self.target)?,
            domain: self.domain.clone(),
            user_prefix: self.user_prefix.clone(),
            numbers: self.user_start..self.user_start + count,
            password: self.password.clone(),
            profile: self.profile(keys)?,
            ramp: Ramp { rate: self.rate, in_flight_max: self.in_flight.max(1) },
            threads: self.threads,
            deadline: Instant::now() + seconds(self.deadline),
        })
    }

    fn profile(&self, keys: &Arc<KeyCache>) -> Result<Arc<Profile>, RunError> {
        let path = self.websocket_path.clone();
        let transport = match self.transport {
            TransportArg::Starttls => Transport::StartTls,
            TransportArg::Tls => Transport::DirectTls,
            TransportArg::Ws => Transport::WebSocket { path },
            TransportArg::Wss => Transport::SecureWebSocket { path },
            TransportArg::Plain => Transport::Plain,
        };
        let trust = match &self.ca {
            None => Trust::Anyone,
            Some(path) => {
                let file = |error| RunError::File { path: path.clone(), error };
                Trust::from_pem(&std::fs::read(path).map_err(file)?)?
            }
        };
        let mut settings = Settings {
            transport,
            trust,
            tls_resumption: self.tls_resumption,
            sasl2: self.sasl2,
            stream_management: if self.sm { StreamManagement::On } else { StreamManagement::Off },
            receipts: self.receipts,
            keys: Arc::clone(keys),
            ..Settings::default()
        };
        if !self.mechanism.is_empty() {
            settings.mechanisms.clone_from(&self.mechanism);
        }
        Ok(Profile::new(settings)?)
    }

    fn read_keys(&self) -> Result<Arc<KeyCache>, RunError> {
        let keys = KeyCache::default();
        if let Some(path) = self.key_cache.as_ref().filter(|path| Path::new(path).exists()) {
            let file = File::open(path).and_then(|file| keys.read(BufReader::new(file)));
            file.map_err(|error| RunError::File { path: path.clone(), error })?;
        }
        Ok(Arc::new(keys))
    }

    fn write_keys(&self, keys: &KeyCache) -> Result<(), RunError> {
        let Some(path) = &self.key_cache else { return Ok(()) };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        let written = file.and_then(|file| {
            let mut writer = BufWriter::new(file);
            keys.write(&mut writer)?;
            writer.flush()
        });
        written.map_err(|error| RunError::File { path: path.clone(), error })
    }

    fn server(&self) -> Result<Processes, RunError> {
        Ok(Processes::new(self.server_pid.clone())?)
    }
}

fn jid<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, carillon_wire::jid::JidError>,
) -> Result<T, RunError> {
    parse(text).map_err(|error| RunError::Jid { jid: text.to_owned(), error })
}

/// Seconds from the command line; nonsense counts as none.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_fanout_needs_one_way_to_publish() {
        let base = "carillon-load fanout --target h:1 --domain d --password p --subscribers 1 --topic t";
        let parse = |more: &str| Cli::try_parse_from(base.split(' ').chain(more.split_whitespace()));
        assert!(parse("").is_err());
        assert!(parse("--http http://h").is_err());
        assert!(parse("--http http://h --key k").is_ok());
        assert!(parse("--publisher-jid a@d").is_err());
        assert!(parse("--publisher-jid a@d --publisher-password p").is_ok());
        assert!(parse("--publisher-jid a@d --publisher-password p --http http://h --key k").is_err());
    }
}

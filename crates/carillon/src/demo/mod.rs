//! `carillon demo`: a node of its own with three devices on it, to look at. Each device is connected by real TLS and XMPP, each
//! notification is sent over HTTP, and each delivery is printed with the time it took. `--cell` shows several nodes.

mod api;
mod cell;

use crate::config::Source;
use crate::serve::{Running, Started, start};
use api::Api;
use carillon_load::blocking::{Client, StreamLost};
use carillon_load::client::tls::Trust;
use carillon_load::client::{
    ClientEvent, End, Failure, Options, Profile, Settings, StreamManagement, stanzas,
};
use carillon_wire::ns;
use carillon_wire::stanza::Stanza;
use carillon_wire::stream::Condition;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// What `carillon demo` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where its settings come from, over those of the demo: data in ./data/demo, a quiet log, and the game
    #[command(flatten)]
    pub source: Source,
    /// Show a cell: three nodes with a PostgreSQL and a NATS of their own, one of which is killed. The binary has to be built with
    /// `--features nats,postgres`. Of the settings those of `--set` are given to each node
    #[arg(long)]
    pub cell: bool,
}

/// The devices of the demo: a name, and what it is.
const DEVICES: [(&str, &str); 3] = [("console", "a console"), ("phone", "a phone"), ("lamp", "a lamp")];
const TOPIC: &str = "weather";
/// What the devices have to tell and is not printed yet.
const NEWS_MAX: usize = 64;

/// How long each step may take before the demo says what is missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the demo, then stays up until it is told to end.
pub fn run(args: &Args) -> ExitCode {
    if args.cell {
        return cell::run(&args.source.overrides);
    }
    let Started { mut running, signals, telemetry } = match start(&source(args)) {
        Ok(started) => started,
        Err(code) => return code,
    };
    if let Err(error) = show(&running) {
        eprintln!("carillon demo: {error}");
        running.drain();
        return ExitCode::FAILURE;
    }
    running.refuse_upgrades("a demo node cannot be upgraded: its devices are in its process");
    running.until_told(signals, &telemetry)
}

/// A node beside any other: data in a folder of its own, a log that leaves the screen to the demo, and a game.
fn source(args: &Args) -> Source {
    let own = ["data_dir=./data/demo", "log.level=warn", "matches.demo=true"];
    let mut overrides: Vec<String> = own.map(str::to_owned).into();
    overrides.extend(args.source.overrides.iter().cloned());
    Source { overrides, ..args.source.clone() }
}

/// What a device has to tell.
enum News {
    Connected {
        device: &'static str,
        took: Duration,
    },
    Received {
        device: &'static str,
        what: String,
        text: String,
        at: Instant,
    },
    /// The node ended, and said goodbye.
    Left {
        device: &'static str,
    },
    Lost {
        device: &'static str,
        why: String,
    },
}

fn show(running: &Running) -> Result<(), String> {
    let ready = running.ready();
    let (Some(http), Some(c2s)) = (ready.http, ready.c2s) else {
        return Err("the demo needs c2s and http".into());
    };
    let api = Api { base: format!("http://127.0.0.1:{http}"), key: running.admin_key().as_str().to_owned() };
    println!("Carillon is ready: XMPP on 127.0.0.1:{c2s} (STARTTLS), HTTP on {}\n", api.base);
    api.call("PUT", &format!("/v1/topics/{TOPIC}"), Some(&json!({ "title": "Weather" })))?;
    println!("A retained item waits on topic '{TOPIC}' before anyone is connected:");
    api.call("POST", &format!("/v1/topics/{TOPIC}/items"), Some(&json!({ "payload": { "sky": "clear" } })))?;
    println!(
        "  POST /v1/topics/{TOPIC}/items  {{\"sky\":\"clear\"}}\n\nThree devices enrol over HTTP and connect by TLS and XMPP:"
    );
    let (sender, news) = sync_channel(NEWS_MAX);
    for (device, what) in DEVICES {
        let jid = enrol(&api, device, what)?;
        let sender = sender.clone();
        std::thread::spawn(move || device_main(device, &jid, c2s, &sender));
    }
    println!("\nThe retained item reaches each right after its login:");
    expect(&news, 2 * DEVICES.len(), None)?;
    println!("\nOne notification to one device:");
    let sent = Instant::now();
    let body = json!({ "to": "console", "payload": { "title": "Your friend is online" }, "priority": "high", "ttl": 3600 });
    let answer = api.call("POST", "/v1/notifications", Some(&body))?;
    println!("  POST /v1/notifications → {} after {}", answer["state"], ms(sent.elapsed()));
    expect(&news, 1, Some(sent))?;
    acknowledged(&api, &answer, sent)?;
    println!("\nOne item to everyone on the topic:");
    let sent = Instant::now();
    api.call("POST", &format!("/v1/topics/{TOPIC}/items"), Some(&json!({ "payload": { "sky": "rain" } })))?;
    println!("  POST /v1/topics/{TOPIC}/items → kept after {}", ms(sent.elapsed()));
    expect(&news, DEVICES.len(), Some(sent))?;
    let folder = running.data_dir().display();
    println!("\nConsole: {}/console  (the admin key is in {folder}/admin.key)", api.base);
    println!("API:     {}/docs", api.base);
    if running.has_match_demo() {
        println!("Game:    {}/demo/match  (open it in two windows)", api.base);
    }
    println!("Try:     carillon send phone --payload '{{\"hello\":1}}' --wait --data-dir {folder}");
    println!("\nThe devices stay connected. Ctrl-C ends the demo.");
    std::thread::spawn(move || {
        for item in news {
            tell(&item, None);
        }
    });
    Ok(())
}

fn enrol(api: &Api, device: &str, what: &str) -> Result<String, String> {
    // From an earlier demo it may be there already, with a secret that nobody knows any more.
    let _ = api.call("DELETE", &format!("/v1/devices/{device}"), None);
    let body = json!({ "id": device, "secret": format!("{device}-demo-secret") });
    let answer = api.call("POST", "/v1/devices", Some(&body))?;
    api.call("PUT", &format!("/v1/devices/{device}/subscriptions/{TOPIC}"), None)?;
    let jid = answer["jid"].as_str().ok_or("the enrolment has no jid")?;
    println!("  {jid:<20} {what}");
    Ok(jid.to_owned())
}

fn device_main(device: &'static str, jid: &str, port: u16, news: &SyncSender<News>) {
    let lost = |why: String| drop(news.send(News::Lost { device, why }));
    let settings =
        Settings { trust: Trust::Anyone, stream_management: StreamManagement::On, ..Settings::default() };
    let profile = match Profile::new(settings) {
        Ok(profile) => profile,
        Err(error) => return lost(error.to_string()),
    };
    let jid = match jid.parse::<carillon_wire::jid::Jid>() {
        Ok(jid) => jid.bare(),
        Err(error) => return lost(error.to_string()),
    };
    let options = Options::new(jid, format!("{device}-demo-secret"), &profile).with_resource("demo");
    let begun = Instant::now();
    let mut client = match Client::connect(("127.0.0.1", port), options) {
        Ok(client) => client,
        Err(error) => return lost(error.to_string()),
    };
    let _ = news.send(News::Connected { device, took: begun.elapsed() });
    loop {
        match client.recv(PATIENCE) {
            Ok(Some(ClientEvent::Stanza(stanza))) => {
                let at = Instant::now();
                if let Some((what, text)) = describe(&stanza) {
                    let _ = news.send(News::Received { device, what, text, at });
                }
            }
            Ok(_) => {}
            Err(StreamLost::Ended(End::Failure(Failure::Stream(error))))
                if error.condition == Condition::SystemShutdown =>
            {
                return drop(news.send(News::Left { device }));
            }
            Err(error) => return lost(error.to_string()),
        }
    }
}

/// What a delivery is and what it carries; none for other stanzas.
fn describe(stanza: &Stanza) -> Option<(String, String)> {
    if let Some((topic, items)) = stanzas::event_items(stanza) {
        let json = items.first()?.child("json", ns::JSON)?;
        return Some((format!("topic {topic}"), json.text()));
    }
    stanza.payload.find("notification", ns::NOTIFICATION)?;
    let json = stanza.payload.find("json", ns::JSON)?;
    Some(("notification".to_owned(), json.element().text()))
}

fn expect(news: &Receiver<News>, count: usize, sent: Option<Instant>) -> Result<(), String> {
    for _ in 0..count {
        match news.recv_timeout(PATIENCE) {
            Ok(News::Lost { device, why }) => return Err(format!("{device} lost its connection: {why}")),
            Ok(News::Left { device }) => return Err(format!("{device} was told that the node ends")),
            Ok(item) => tell(&item, sent),
            Err(_) => return Err("a delivery did not come in time".into()),
        }
    }
    Ok(())
}

fn tell(news: &News, sent: Option<Instant>) {
    match news {
        News::Connected { device, took } => println!("  {device:<8} logged in after {}", ms(*took)),
        News::Received { device, what, text, at } => {
            let took = sent.map(|sent| format!("  after {}", ms(at.saturating_duration_since(sent))));
            println!("  {device:<8} ← {what}  {text}{}", took.unwrap_or_default());
        }
        News::Left { device } => println!("  {device:<8} left: the node ends"),
        News::Lost { device, why } => println!("  {device:<8} lost its connection: {why}"),
    }
}

/// Follows a notification to its acknowledgement.
fn acknowledged(api: &Api, answer: &Value, sent: Instant) -> Result<(), String> {
    let id = answer["id"].as_str().ok_or("the notification has no id")?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let trace = api.call("GET", &format!("/v1/notifications/{id}"), None)?;
        if trace["state"] == "acknowledged" {
            println!("  acknowledged by {} after {}", trace["acknowledged_by"], ms(sent.elapsed()));
            return Ok(());
        }
    }
    Err("the notification was not acknowledged in time".into())
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

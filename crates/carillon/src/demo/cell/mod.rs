//! `carillon demo --cell`: three nodes with the engines that they share, devices on all of them, an item that reaches everyone, a node that is
//! killed, and what its clients see of it.

mod devices;
mod engines;
mod nodes;
mod process;

use crate::process::signal::{Signals, Wish};
use carillon_wire::jid::BareJid;
use devices::{Ports, Told, What, after};
use engines::Engines;
use nodes::Node;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const NODES: [&str; 3] = ["node1", "node2", "node3"];
/// The node that is killed: the last.
const KILLED: usize = NODES.len() - 1;
const DEVICES: usize = 9;
const TOPIC: &str = "weather";
/// How long each step may take before the demo says what is missing. A node that is silent is buried after nine seconds at the latest.
const PATIENCE: Duration = Duration::from_secs(40);

/// Runs the demo, then stays up until it is told to end. Each node is given these settings besides.
pub(super) fn run(overrides: &[String]) -> ExitCode {
    if !cfg!(all(feature = "nats", feature = "postgres")) {
        eprintln!(
            "carillon demo: a cell needs NATS and PostgreSQL: build with `--features nats,postgres`, or say `make cell`"
        );
        return ExitCode::FAILURE;
    }
    let folder = Folder::new();
    let shown = folder.and_then(|folder| {
        let cell = Cell::start(folder, overrides)?;
        show(cell)
    });
    match shown.and_then(|cell| wait(cell).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("carillon demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A folder that goes with the demo.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        // A short path: that of a Unix socket has room for a hundred characters.
        let path = std::env::temp_dir().join(format!("carillon-cell-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("carillon demo: {} cannot be removed: {error}", self.0.display());
        }
    }
}

/// What runs. Its parts end in this order.
struct Cell {
    nodes: Vec<Node>,
    engines: Engines,
    overrides: Vec<String>,
    folder: Folder,
}

impl Cell {
    fn start(folder: Folder, overrides: &[String]) -> Result<Cell, String> {
        let path: &Path = &folder.0;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|e| e.to_string())?;
        crate::files::write_whole(&path.join("secret"), &secret, 0o600).map_err(|e| e.to_string())?;
        let shared = path.join("engines");
        std::fs::create_dir(&shared).map_err(|e| e.to_string())?;
        let engines = Engines::start(&shared)?;
        println!(
            "The engines that a cell shares: {}\n\nThree nodes join, each knowing nothing but the engines:",
            engines.what
        );
        let mut nodes = Vec::new();
        for name in NODES {
            let begun = Instant::now();
            let node = Node::start(name, path, &engines, overrides)?;
            println!(
                "  {name}  XMPP on 127.0.0.1:{}, HTTP on {}  after {}",
                node.c2s,
                node.api.base,
                after(begun, Instant::now())
            );
            nodes.push(node);
        }
        Ok(Cell { nodes, engines, overrides: overrides.to_vec(), folder })
    }

    fn restart(&mut self, number: usize) -> Result<(), String> {
        self.nodes[number] = Node::start(NODES[number], &self.folder.0, &self.engines, &self.overrides)?;
        Ok(())
    }
}

/// A device as it is known here.
struct Device {
    jid: String,
    home: String,
    /// The number of the node that it is connected to.
    node: usize,
}

fn show(mut cell: Cell) -> Result<Cell, String> {
    homes(&cell.nodes[0])?;
    let told = Told::new();
    let ports: Ports = Arc::new(Mutex::new(cell.nodes.iter().map(|node| node.c2s).collect()));
    let mut devices = enrol(&cell, &told, &ports)?;
    connected(&cell, &told, &mut devices)?;
    publish(&cell.nodes[0], &told, &devices, "rain")?;
    kill(&cell, &told, &mut devices)?;
    println!("\nNobody is missing: another item, published on {}:", NODES[1]);
    publish(&cell.nodes[1], &told, &devices, "sun")?;
    println!("\n{} starts again:", NODES[KILLED]);
    let begun = Instant::now();
    cell.restart(KILLED)?;
    *ports.lock().unwrap_or_else(PoisonError::into_inner) = cell.nodes.iter().map(|node| node.c2s).collect();
    let joined = |node: &Value| node["state"] == "alive" && node["partitions"].as_u64() > Some(0);
    cell.nodes[0].until(NODES[KILLED], joined)?;
    println!("  it has its share of the names again after {}", after(begun, Instant::now()));
    homes(&cell.nodes[0])?;
    let first = &cell.nodes[0];
    let data = cell.folder.0.join(NODES[0]).join("data");
    println!(
        "\nConsole: {}/console#cluster  (the admin key is in {}/admin.key)",
        first.api.base,
        data.display()
    );
    println!("Try:     carillon cluster nodes --data-dir {}", data.display());
    println!("         kill -9 {}   # {}", cell.nodes[1].program.pid, NODES[1]);
    // Whoever tells something is heard until the end.
    std::thread::spawn(move || while told.next(Instant::now() + PATIENCE * 1000).is_some() {});
    Ok(cell)
}

/// Prints which part of the homes each node has.
fn homes(node: &Node) -> Result<(), String> {
    println!("\nWhat each keeps of the names of accounts, topics and rooms, as {} sees it:", node.name);
    for seen in node.nodes()? {
        let share = seen["homes"].as_f64().unwrap_or_default() * 100.0;
        let word = |member: &str| seen[member].as_str().unwrap_or_default().to_owned();
        println!("  {}  {:<6} {share:>3.0} %", word("node"), word("state"));
    }
    Ok(())
}

fn enrol(cell: &Cell, told: &Told, ports: &Ports) -> Result<Vec<Device>, String> {
    cell.nodes[0].api.call("PUT", &format!("/v1/topics/{TOPIC}"), Some(&json!({ "title": "Weather" })))?;
    println!(
        "\n{DEVICES} devices enrol by any node, and connect to any; an account is at home where its device is:"
    );
    let mut devices = Vec::new();
    for number in 0..DEVICES {
        let (id, secret) = (format!("device{}", number + 1), format!("secret-of-the-demo-{number}"));
        let api = &cell.nodes[number % NODES.len()].api;
        let answer = api.call("POST", "/v1/devices", Some(&json!({ "id": id, "secret": secret })))?;
        api.call("PUT", &format!("/v1/devices/{id}/subscriptions/{TOPIC}"), None)?;
        let jid = answer["jid"].as_str().ok_or("the enrolment has no jid")?.to_owned();
        let bare: BareJid = jid.parse().map_err(|e| format!("{jid}: {e}"))?;
        // Not always the node that enrolled it.
        let node = (number + number / NODES.len()) % NODES.len();
        devices::start(number, bare, secret, node, ports.clone(), told.sender.clone());
        devices.push(Device { home: String::new(), jid, node });
    }
    Ok(devices)
}

/// Waits until each device has a session.
fn connected(cell: &Cell, told: &Told, devices: &mut [Device]) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut missing: Vec<usize> = (0..devices.len()).collect();
    while !missing.is_empty() {
        let news = told.next(deadline).ok_or("a device did not connect in time")?;
        if let What::Connected(node) = news.what {
            devices[news.device].node = node;
            missing.retain(|device| *device != news.device);
        }
    }
    for device in devices.iter_mut() {
        device.home = cell.nodes[0].home(&device.jid)?;
        let carried =
            if device.home == NODES[device.node] { "" } else { "  (carried to its home over NATS)" };
        println!(
            "  {:<18} connected to {}, at home on {}{carried}",
            device.jid, NODES[device.node], device.home
        );
    }
    Ok(())
}

/// Publishes an item, and waits until every device has it.
fn publish(node: &Node, told: &Told, devices: &[Device], sky: &str) -> Result<(), String> {
    if sky == "rain" {
        println!("\nOne item for everyone on the topic, published on {}:", node.name);
    }
    let sent = Instant::now();
    node.api.call(
        "POST",
        &format!("/v1/topics/{TOPIC}/items"),
        Some(&json!({ "payload": { "sky": sky } })),
    )?;
    println!("  POST /v1/topics/{TOPIC}/items → kept after {}", after(sent, Instant::now()));
    let deadline = Instant::now() + PATIENCE;
    let mut times = BTreeMap::new();
    while times.len() < devices.len() {
        let missing = || format!("the item reached {} of {} devices", times.len(), devices.len());
        let news = told.next(deadline).ok_or_else(missing)?;
        if let What::Received(text) = news.what
            && text.contains(sky)
        {
            times.entry(news.device).or_insert(news.at);
        }
    }
    let last = times.values().max().copied().unwrap_or(sent);
    println!(
        "  all {} devices on {} nodes have it after {}",
        times.len(),
        nodes_of(devices),
        after(sent, last)
    );
    Ok(())
}

fn nodes_of(devices: &[Device]) -> usize {
    devices.iter().map(|device| device.node).collect::<std::collections::BTreeSet<_>>().len()
}

/// What a device saw of the node that was killed.
#[derive(Default)]
struct Saw {
    lost: Option<Instant>,
    back: Option<(Instant, usize)>,
}

/// Kills a node, and says what its clients see of it.
fn kill(cell: &Cell, told: &Told, devices: &mut [Device]) -> Result<(), String> {
    let killed = NODES[KILLED];
    println!("\n{killed} is killed (kill -9 {}). What the devices see:", cell.nodes[KILLED].program.pid);
    let at = Instant::now();
    cell.nodes[KILLED].program.kill();
    let mut saw: Vec<Saw> = devices.iter().map(|_| Saw::default()).collect();
    let is_hit = |device: &Device| device.node == KILLED || device.home == killed;
    let deadline = Instant::now() + PATIENCE;
    while (0..devices.len()).any(|n| is_hit(&devices[n]) && saw[n].back.is_none()) {
        let news = told.next(deadline).ok_or("a device did not come back in time")?;
        let saw = &mut saw[news.device];
        match news.what {
            What::Lost => {
                saw.lost.get_or_insert(news.at);
                saw.back = None;
            }
            What::Connected(node) => saw.back = Some((news.at, node)),
            What::Received(_) => {}
        }
    }
    for (device, saw) in devices.iter().zip(&saw) {
        let of = match (device.node == KILLED, device.home == killed) {
            (true, true) => "connected to it, at home on it",
            (true, false) => "connected to it",
            (false, true) => "at home on it",
            (false, false) => "neither",
        };
        let what = match (saw.lost, saw.back) {
            (Some(lost), Some((back, node))) => format!(
                "lost its stream after {}, has a session by {} after {}",
                after(at, lost),
                NODES[node],
                after(at, back)
            ),
            (Some(lost), None) => format!("lost its stream after {}", after(at, lost)),
            (None, _) => "noticed nothing".to_owned(),
        };
        println!("  {:<18} {of:<31} {what}", device.jid);
    }
    for (device, saw) in devices.iter_mut().zip(&saw) {
        device.node = saw.back.map_or(device.node, |(_, node)| node);
    }
    let buried = cell.nodes[0].until(killed, |node| node["state"] == "dead" && node["partitions"] == 0)?;
    println!(
        "{killed} is {} after {}, as neither NATS nor PostgreSQL has a connection of it: {} and {} keep its names.",
        buried["state"].as_str().unwrap_or_default(),
        after(at, Instant::now()),
        NODES[0],
        NODES[1]
    );
    for device in devices.iter_mut() {
        device.home = cell.nodes[0].home(&device.jid)?;
    }
    Ok(())
}

/// Stays up until a signal ends it.
fn wait(cell: Cell) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        println!("\nThe devices stay connected. Ctrl-C ends the demo, and removes what it made.");
        while !matches!(signals.next().await, Wish::Drain | Wish::Quit) {}
        Ok::<(), std::io::Error>(())
    })?;
    drop(cell);
    Ok(())
}

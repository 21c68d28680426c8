//! `carillon module`: extensions in WebAssembly.

use super::client::Client;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `carillon module`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check and compile a module and keep it; nothing calls it before it is activated
    ///
    /// Prints NAME@HASH, which `activate` takes.
    Push {
        /// A core module of `carillon:hooks@1`
        file: PathBuf,
        /// Its name; by default that of the file
        #[arg(long)]
        name: Option<String>,
    },
    /// Have a version decide, from the next turn of every shard on
    Activate(Activate),
    /// Have no version of a module decide any more
    Deactivate {
        /// Name of the module
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove all versions of a module that is not active
    Remove {
        /// Name of the module
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show modules, what is activated of them, and what they decided
    Status {
        /// Name of the module; without it, all
        name: Option<String>,
    },
    /// Activate the last version that decided for all before this one
    Rollback {
        /// Name of the module
        name: String,
    },
    /// Print what a module logged, and how it failed
    Logs {
        /// Name of the module
        name: String,
    },
    /// Print how a version in shadow differs from the one that decides
    Diff {
        /// Name of the module
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Activate {
    /// The version: its module's name, and at least eight digits of its hash
    #[arg(value_name = "NAME@HASH")]
    version: String,
    /// Only on this node of the cell: its name or number
    #[arg(long)]
    node: Option<String>,
    /// Only for this domain
    #[arg(long)]
    domain: Option<String>,
    /// For so many accounts of a hundred; the version before decides for the others
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: u8,
    /// It decides nothing, and is compared with the version before: see `diff`
    #[arg(long)]
    shadow: bool,
    /// What becomes of what it fails to decide about: it goes on, or no further
    #[arg(long, default_value = "open", value_parser = ["open", "closed"])]
    on_failure: String,
    /// What the module is told
    #[arg(long, default_value = "")]
    config: String,
}

const COLUMNS: &[Column] = &[
    ("NAME", "name"),
    ("ACTIVE", "active"),
    ("BEFORE", "before"),
    ("FOR", "scope"),
    ("STANDING", "standing"),
    ("CALLS", "calls"),
    ("FAILURES", "failures"),
];

const LINE_COLUMNS: &[Column] = &[("AT", "at"), ("TEXT", "text")];

/// What a module's record begins with.
const ORDER: &[&str] = &["name", "activation", "figures", "versions"];

/// Digits of a hash that are printed.
const DIGITS: usize = 12;

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::Push { file, name } => push(&client, &mut output, &file, name),
        Command::Activate(wanted) => activate(&client, &mut output, wanted),
        Command::Deactivate { name, yes } => {
            confirm(yes, &format!("has what `{name}` decides about pass"))?;
            client.delete(&path(&name, "/activation"))?;
            output.done(&format!("deactivated {name}"), &json!({ "name": name }))
        }
        Command::Remove { name, yes } => {
            confirm(yes, &format!("removes all versions of `{name}`"))?;
            client.delete(&path(&name, ""))?;
            output.done(&format!("removed {name}"), &json!({ "name": name }))
        }
        Command::Status { name: Some(name) } => output.record(&client.get(&path(&name, ""))?, ORDER),
        Command::Status { name: None } => {
            let modules = client.rows("/v1/admin/modules", "modules")?;
            let rows: Vec<Value> = if output.is_json() { modules } else { modules.iter().map(row).collect() };
            output.rows(&rows, COLUMNS)
        }
        Command::Rollback { name } => {
            let module = client.post(&path(&name, "/rollback"), &json!({}))?;
            let hash = short(&module["activation"]["hash"]);
            output.done(&format!("{name}@{hash} decides again"), &module)
        }
        Command::Logs { name } => output.rows(&client.rows(&path(&name, "/logs"), "lines")?, LINE_COLUMNS),
        Command::Diff { name } => {
            let found = client.get(&path(&name, "/differences"))?;
            if output.is_json() {
                return output.record(&found, &["same", "different"]);
            }
            output.text(&format!("{} calls the same, {} not\n", found["same"], found["different"]))?;
            let lines = found["lines"].as_array().cloned().unwrap_or_default();
            output.rows(&lines, LINE_COLUMNS)
        }
    }
}

fn path(name: &str, rest: &str) -> String {
    format!("/v1/admin/modules/{}{rest}", segment(name))
}

fn push(client: &Client, output: &mut Output<'_>, file: &Path, name: Option<String>) -> Result<(), Failure> {
    let code = std::fs::read(file).map_err(|e| Failure::Usage(format!("{}: {e}", file.display())))?;
    let of_file = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.or_else(of_file).ok_or_else(|| Failure::Usage("give --name".into()))?;
    let pushed = client.post_wasm(&path(&name, ""), &code)?;
    // Alone on its line, so that it can go into a variable: VERSION=$(carillon module push …).
    output.done(&format!("{name}@{}", short(&pushed["hash"])), &pushed)
}

fn activate(client: &Client, output: &mut Output<'_>, wanted: Activate) -> Result<(), Failure> {
    let Activate { version, node, domain, percent, shadow, on_failure, config } = wanted;
    let Some((name, hash)) = version.rsplit_once('@') else {
        return Err(Failure::Usage(format!("{version}: a version is NAME@HASH, as `push` prints it")));
    };
    let mut body = json!({
        "hash": hash, "percent": percent, "shadow": shadow, "on_failure": on_failure, "config": config,
    });
    for (key, value) in [("node", node), ("domain", domain)] {
        if let Some(value) = value {
            body[key] = value.into();
        }
    }
    let module = client.put(&path(name, "/activation"), &body)?;
    let hash = short(&module["activation"]["hash"]);
    output.done(&format!("activated {name}@{hash} for {}", scope(&module["activation"])), &module)
}

/// A module as a row for people.
fn row(module: &Value) -> Value {
    let (activation, figures) = (&module["activation"], &module["figures"]);
    let sum = |counts: &Value| {
        counts.as_object().map_or(0, |of| of.values().filter_map(Value::as_u64).sum::<u64>())
    };
    json!({
        "name": module["name"],
        "active": short(&activation["hash"]),
        "before": short(&activation["base"]),
        "scope": if activation.is_null() { String::new() } else { scope(activation) },
        "standing": figures["standing"],
        "calls": sum(&figures["verdicts"]) + sum(&figures["failures"]),
        "failures": sum(&figures["failures"]),
    })
}

fn scope(activation: &Value) -> String {
    let whom = match (activation["percent"].as_u64(), activation["domain"].as_str()) {
        (Some(100), None) => "all".to_owned(),
        (Some(100), Some(domain)) => domain.to_owned(),
        (percent, domain) => {
            format!("{} % of {}", percent.unwrap_or_default(), domain.unwrap_or("all"))
        }
    };
    let whom = match activation["node"].as_str() {
        Some(node) => format!("{whom} on {node}"),
        None => whom,
    };
    if activation["shadow"] == true { format!("{whom}, in shadow") } else { whom }
}

fn short(hash: &Value) -> String {
    hash.as_str().unwrap_or_default().chars().take(DIGITS).collect()
}

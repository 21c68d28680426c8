//! `carillon link`: short links, and the files of the apps that open them.

use super::client::Query;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use crate::web::segment;
use carillon_core::model::LinkFile;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `carillon link`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain to act in, for a key of the whole node; without it, the node's first
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List links, newest first
    List {
        /// Only links whose code or URL contains this text
        search: Option<String>,
        /// The most that are listed
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a link
    Show {
        /// Code of the link
        code: String,
    },
    /// Create a link and print its short URL; the same URL gives the same link
    Create {
        /// Where it leads
        #[arg(value_name = "URL")]
        target: String,
        /// Code of the link: letters, digits, - and _; without it, one is derived from the URL
        #[arg(long)]
        code: Option<String>,
        /// When it expires (RFC 3339); without it, never
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// The URL can be changed later; browsers do not remember it
        #[arg(long)]
        may_change: bool,
    },
    /// Change a link; what is not given stays as it is
    Set {
        /// Code of the link
        code: String,
        /// Where it leads, for a link that was created with --may-change
        #[arg(long, value_name = "URL")]
        target: Option<String>,
        /// When it expires (RFC 3339), or `never`
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// Whether it is taken down
        #[arg(long, value_name = "BOOL")]
        removed: Option<bool>,
    },
    /// Take a link down: from now on it is gone, and its URL is not shortened again
    Delete {
        /// Code of the link
        code: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print the file of an app, which the hosts of the domain serve
    ShowFile {
        /// Name of the file
        #[arg(value_parser = FILES)]
        name: String,
    },
    /// Have the hosts of the domain serve the file of an app; it is checked first
    SetFile {
        /// Name of the file
        #[arg(value_parser = FILES)]
        name: String,
        /// The file
        file: PathBuf,
    },
    /// Serve the file of an app no more
    DeleteFile {
        /// Name of the file
        #[arg(value_parser = FILES)]
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Check the file of an app, without a node
    CheckFile {
        /// Name of the file
        #[arg(value_parser = FILES)]
        name: String,
        /// The file
        file: PathBuf,
    },
}

const FILES: [&str; 2] = ["apple-app-site-association", "assetlinks.json"];

const COLUMNS: &[Column] = &[
    ("CODE", "code"),
    ("URL", "url"),
    ("CLICKS", "clicks"),
    ("CREATED", "created_at"),
    ("EXPIRES", "expires_at"),
    ("REMOVED", "removed_at"),
];

/// What a link's record begins with.
const ORDER: &[&str] = &["code", "short_url", "url", "clicks", "last_click_at", "created_at"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut output = args.remote.output(out);
    if let Command::CheckFile { name, file } = &args.command {
        read_file(name, file)?;
        return output
            .done(&format!("{} is a {name} that is read", file.display()), &json!({ "valid": true }));
    }
    let client = args.remote.client()?;
    let at = |path: String| Query::of(path).with_some("domain", args.domain.as_deref()).0;
    let link = |code: &str| at(format!("/v1/links/{}", segment(code)));
    let file_at = |name: &str| at(format!("/v1/link-files/{name}"));
    match args.command {
        Command::List { search, limit } => {
            let query = Query::of("/v1/links").with_some("domain", args.domain.as_deref());
            let query = query.with_some("search", search.as_deref()).0;
            output.rows(&client.list(&query, "links", limit)?, COLUMNS)
        }
        Command::Show { code } => output.record(&client.get(&link(&code))?, ORDER),
        Command::Create { target, code, expires_at, may_change } => {
            let body = given([
                ("url", Some(target.into())),
                ("code", code.map(Value::from)),
                ("expires_at", expires_at.map(Value::from)),
                ("may_change", may_change.then_some(Value::Bool(true))),
            ]);
            let made = client.post(&at("/v1/links".into()), &body)?;
            // The short URL alone, so that it can go into a variable.
            output.done(made.get("short_url").and_then(Value::as_str).unwrap_or_default(), &made)
        }
        Command::Set { code, target, expires_at, removed } => {
            let body = given([
                ("url", target.map(Value::from)),
                ("expires_at", expires_at.map(|at| if at == "never" { Value::Null } else { at.into() })),
                ("removed", removed.map(Value::from)),
            ]);
            output.done(&format!("changed link {code}"), &client.patch(&link(&code), &body)?)
        }
        Command::Delete { code, yes } => {
            confirm(yes, &format!("takes link {code} down: who follows it is told that it is gone"))?;
            output.done(&format!("took link {code} down"), &client.delete(&link(&code))?)
        }
        Command::ShowFile { name } => {
            let file = client.get(&file_at(&name))?;
            output.text(&format!("{file:#}"))
        }
        Command::SetFile { name, file } => {
            let value = read_file(&name, &file)?;
            output.done(&format!("set {name}"), &client.put(&file_at(&name), &value)?)
        }
        Command::DeleteFile { name, yes } => {
            confirm(yes, &format!("removes {name}: links open in a browser, and not in the app"))?;
            output.done(&format!("deleted {name}"), &client.delete(&file_at(&name))?)
        }
        Command::CheckFile { .. } => Ok(()),
    }
}

/// The members that are there.
fn given<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

/// The file of an app, and under which name it is to be served.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    name: String,
    file: PathBuf,
}

impl NamedFile {
    /// Reads and checks it.
    pub(super) fn read(&self) -> Result<Value, Failure> {
        read_file(&self.name, &self.file)
    }
}

/// Reads `NAME=FILE`.
pub(super) fn named_file(text: &str) -> Result<NamedFile, String> {
    let (name, file) = text.split_once('=').ok_or("expected NAME=FILE")?;
    if !FILES.contains(&name) {
        return Err(format!("`{name}` is no file of an app; there are {}", FILES.join(" and ")));
    }
    Ok(NamedFile { name: name.to_owned(), file: file.into() })
}

/// Reads and checks the file of an app.
fn read_file(name: &str, file: &std::path::Path) -> Result<Value, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| wrong(&error))?;
    let kind = LinkFile::named(name).ok_or_else(|| wrong(&"no such kind of file"))?;
    carillon_http::check_link_file(kind, &bytes).map_err(|why| wrong(&why))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(&error))
}

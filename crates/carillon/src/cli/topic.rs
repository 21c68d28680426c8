//! `carillon topic`: channels that many follow.

use super::client::Query;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, created};
use super::remote::Remote;
use super::send::json_argument;
use crate::web::segment;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io::Write;

/// What `carillon topic` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain of the topic; by default that of the node
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List topics
    List,
    /// Create a topic; what is not given has its default
    ///
    /// A topic that exists is left as it is: exit code 0 if it has all that is given, else 1.
    Create {
        /// Name of the topic
        topic: String,
        #[command(flatten)]
        config: Box<ConfigArgs>,
    },
    /// Change a topic; what is not given stays as it is
    Set {
        /// Name of the topic
        topic: String,
        #[command(flatten)]
        config: Box<ConfigArgs>,
    },
    /// Show a topic
    Show {
        /// Name of the topic
        topic: String,
    },
    /// Delete a topic with its items and subscriptions
    Delete {
        /// Name of the topic
        topic: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Publish an item to all who follow a topic
    Publish {
        /// Name of the topic
        topic: String,
        /// Payload of the item: JSON, or - to read it from standard input
        #[arg(long, value_name = "JSON")]
        payload: String,
        /// Id of the item; an item of the same id is replaced
        #[arg(long)]
        id: Option<String>,
    },
    /// List the subscribers of a topic
    Subscribers {
        /// Name of the topic
        topic: String,
    },
}

#[derive(Debug, clap::Args)]
struct ConfigArgs {
    /// Title of the topic, for people
    #[arg(long)]
    title: Option<String>,
    /// Who may subscribe and read
    #[arg(long, value_parser = ["open", "whitelist"])]
    access: Option<String>,
    /// Who may publish over XMPP
    #[arg(long, value_parser = ["publishers", "subscribers", "open"])]
    publish: Option<String>,
    /// How many items the topic keeps, 1 to 10000
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// Whether the topic keeps items
    #[arg(long, value_name = "BOOL")]
    persist_items: Option<bool>,
    /// When a subscriber is sent the last item without asking for it
    #[arg(long, value_parser = ["never", "on_sub", "on_sub_and_presence"])]
    send_last: Option<String>,
}

/// An item to be published; the payload goes as it was written.
#[derive(Serialize)]
struct Item<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    payload: &'a RawValue,
}

const COLUMNS: &[Column] = &[
    ("TOPIC", "name"),
    ("ACCESS", "access_model"),
    ("PUBLISH", "publish_model"),
    ("KEEPS", "keeps"),
    ("CREATED", "created_at"),
    ("TITLE", "title"),
];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let domain = args.domain.as_deref();
    let at = |path: String| Query::of(path).with_some("domain", domain).0;
    let path = |topic: &str| format!("/v1/topics/{}", segment(topic));
    match args.command {
        Command::List => {
            let mut topics = client.list(&at("/v1/topics".to_owned()), "topics", usize::MAX)?;
            if !output.is_json() {
                topics = topics.iter().map(flat).collect();
            }
            output.rows(&topics, COLUMNS)
        }
        Command::Create { topic, config } => {
            let (made, is_new) = client.create(&at(path(&topic)), &config.body())?;
            output.done(&created("the topic", &topic, is_new), &made)
        }
        Command::Set { topic, config } => {
            let changed = client.patch(&at(path(&topic)), &config.body())?;
            output.done(&format!("changed {topic}"), &changed)
        }
        Command::Show { topic } => {
            output.record(&client.get(&at(path(&topic)))?, &["name", "domain", "created_at"])
        }
        Command::Delete { topic, yes } => {
            confirm(yes, &format!("deletes the topic {topic} with its items and subscriptions"))?;
            let gone = client.delete(&at(path(&topic)))?;
            output.done(&format!("deleted {topic}"), &gone)
        }
        Command::Publish { topic, payload, id } => {
            let item = Item { id: id.as_deref(), payload: &json_argument("--payload", &payload)? };
            let published = client.post(&at(format!("{}/items", path(&topic))), &item)?;
            let id = published.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            output.done(&format!("published {id}"), &published)
        }
        Command::Subscribers { topic } => {
            let path = at(format!("{}/subscribers", path(&topic)));
            let followers = client.list(&path, "subscribers", usize::MAX)?;
            output.rows(&followers, &[("SUBSCRIBER", "")])
        }
    }
}

impl ConfigArgs {
    /// What is given of the topic's configuration, as the API takes it.
    fn body(self) -> Value {
        let named = [
            ("title", self.title.map(Value::from)),
            ("access_model", self.access.map(Value::from)),
            ("publish_model", self.publish.map(Value::from)),
            ("max_items", self.max_items.map(Value::from)),
            ("persist_items", self.persist_items.map(Value::from)),
            ("send_last_published_item", self.send_last.map(Value::from)),
        ];
        named
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// A topic with its configuration's members beside its name, and how many items it keeps.
fn flat(topic: &Value) -> Value {
    let mut flat = topic.clone();
    if let (Some(flat), Some(Value::Object(config))) = (flat.as_object_mut(), topic.get("config")) {
        flat.extend(config.clone());
        let keeps = config.get("persist_items") != Some(&Value::Bool(false));
        flat.insert(
            "keeps".to_owned(),
            config.get("max_items").filter(|_| keeps).cloned().unwrap_or(0.into()),
        );
    }
    flat
}

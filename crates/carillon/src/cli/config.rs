//! `carillon config`: settings checked, explained and printed.

use super::failure::Failure;
use super::link;
use super::output::Output;
use crate::config::{Config, Reload, SETTINGS, Setting, Source, nearest, print};
use crate::preflight::{self, Purpose, Severity};
use serde_json::{Value, json};
use std::io::Write;

/// What `carillon config` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the settings, and the machine they are for: ports, folders, certificate, open files
    Check {
        #[command(flatten)]
        source: Source,
        /// Look also for what a node that serves the public should not have
        #[arg(long)]
        production: bool,
        /// A file of an app that the hosts of links are to serve, as apple-app-site-association=FILE or assetlinks.json=FILE; may be given again
        #[arg(long = "link-file", value_name = "NAME=FILE", value_parser = link::named_file)]
        link_files: Vec<link::NamedFile>,
    },
    /// Show every setting with its value and where it comes from, or explain one or a group
    Explain {
        /// The setting, or the group such as `archive`
        key: Option<String>,
        #[command(flatten)]
        source: Source,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a settings file with every setting at its default
    Sample,
    /// Print the manual page of the settings
    Manual,
}

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    match args.command {
        Command::Check { source, production, link_files } => {
            let config = load(&source)?;
            check(&config, if production { Purpose::Production } else { Purpose::Check }, &link_files, out)
        }
        Command::Explain { key, source, json } => {
            explain(key.as_deref(), &source, &mut Output::new(out, json))
        }
        Command::Sample => Ok(out.write_all(print::sample().as_bytes())?),
        Command::Manual => Ok(out.write_all(print::manual().as_bytes())?),
    }
}

/// Says what the settings cannot say: what is wrong with the machine they are for, and with the files of apps.
fn check(
    config: &Config,
    purpose: Purpose,
    link_files: &[link::NamedFile],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let findings = preflight::inspect(config, purpose);
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let wrong: Vec<Failure> = link_files.iter().filter_map(|file| file.read().err()).collect();
    for why in &wrong {
        writeln!(out, "error: {why}")?;
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    match errors + wrong.len() {
        0 => Ok(writeln!(out, "the settings are valid")?),
        1 => Err(Failure::Refused("the settings are valid, but there is 1 error".to_owned())),
        n => Err(Failure::Refused(format!("the settings are valid, but there are {n} errors"))),
    }
}

fn explain(key: Option<&str>, source: &Source, output: &mut Output<'_>) -> Result<(), Failure> {
    let config = load(source)?;
    let Some(key) = key else {
        let rows: Vec<Value> =
            SETTINGS.iter().map(|setting| row(&config, setting, output.is_json())).collect();
        let columns =
            [("SETTING", "key"), ("FROM", "from"), ("APPLIED BY", "applied_by"), ("VALUE", "value")];
        return output.rows(&rows, &columns);
    };
    let group: Vec<&Setting> = SETTINGS.iter().filter(|setting| is_within(setting, key)).collect();
    if !group.is_empty() {
        if output.is_json() {
            let rows: Vec<Value> = group.iter().map(|setting| row(&config, setting, true)).collect();
            return output.rows(&rows, &[]);
        }
        let all: Vec<String> = group.iter().map(|setting| print::explain(&config, setting)).collect();
        return output.text(&all.join("\n"));
    }
    let setting = Setting::named(key).ok_or_else(|| {
        let hint = nearest(key).map(|key| format!("; did you mean {key}?")).unwrap_or_default();
        Failure::Usage(format!("there is no setting {key}{hint}"))
    })?;
    if output.is_json() {
        return output.record(&row(&config, setting, true), &[]);
    }
    output.text(&print::explain(&config, setting))
}

/// Whether a setting belongs to a group: its key begins with the group's name and a dot.
fn is_within(setting: &Setting, group: &str) -> bool {
    setting.key.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
}

/// A setting as a row; its value as JSON or as it is written in a file.
fn row(config: &Config, setting: &Setting, json: bool) -> Value {
    let value = setting.value(&config.settings);
    json!({
        "key": setting.key,
        "value": if json { value.into() } else { Value::from(value.to_string()) },
        "default": Value::from(setting.default()),
        "from": print::origin(config, setting),
        "takes": setting.kind.to_string(),
        "about": setting.about(),
        "applied_by": match setting.reload { Reload::Live => "sighup", Reload::Restart => "restart" },
    })
}

fn load(source: &Source) -> Result<Config, Failure> {
    Config::load(source).map_err(|problems| Failure::Usage(format!("the settings are not valid\n{problems}")))
}

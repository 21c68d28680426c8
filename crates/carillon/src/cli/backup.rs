//! `carillon backup` and `carillon restore`: the database to a file and back. No node needs to run for the one, and none may
//! for the other.

use super::failure::Failure;
use super::output::Output;
use crate::backends;
use crate::config::{Config, Source};
use carillon_backend::{Contents, CopyError, OpenError};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What `carillon backup` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Backup {
    /// File to write, which must not exist
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `carillon restore` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// Also when the data folder has a database: it is kept under its name with .replaced
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The order in which a copy is described; its tables follow.
const ORDER: &[&str] = &["file", "database", "replaced", "missing", "bytes", "schema_version"];

/// Files of the data folder that a restored node should have, and what happens without them.
const COMPANIONS: [(&str, &str); 2] = [
    ("node.secret", "devices with tokens have to log in with their passwords again"),
    ("admin.key", "the node makes another admin key, and the former one stays valid until it is removed"),
];

/// Writes a backup.
pub(super) fn backup(args: &Backup, out: &mut dyn Write) -> Result<(), Failure> {
    let database = database(&args.source)?;
    let contents = carillon_backend::backup(&database, &args.backup).map_err(|e| {
        let hint = match &e {
            CopyError::Missing { .. } => ": give --data-dir or --config",
            CopyError::Exists { .. } => ": a backup is written to a new file",
            _ => "",
        };
        failure(&e, hint)
    })?;
    let said =
        json!({ "file": args.backup.display().to_string(), "database": database.display().to_string() });
    Output::new(out, args.json).record(&described(said, &contents), ORDER)
}

/// Restores one.
pub(super) fn restore(args: &Restore, out: &mut dyn Write) -> Result<(), Failure> {
    let database = database(&args.source)?;
    let restored = carillon_backend::restore(&args.backup, &database, args.replace).map_err(|e| {
        let hint = match &e {
            CopyError::Exists { path } if *path == database => ": --replace puts it aside",
            CopyError::Exists { .. } => ", from an earlier restore: move or remove it",
            CopyError::Database(OpenError::InUse { .. }) => ": stop the node first",
            _ => "",
        };
        failure(&e, hint)
    })?;
    let folder = database.parent().unwrap_or(Path::new("."));
    let missing = COMPANIONS.iter().filter(|(name, _)| !folder.join(name).exists());
    for (name, without) in missing.clone() {
        eprintln!("carillon: {} is not there: without it {without}", folder.join(name).display());
    }
    let said = json!({
        "file": args.backup.display().to_string(),
        "database": database.display().to_string(),
        "replaced": restored.replaced.map(|path| path.display().to_string()),
        "missing": missing.map(|(name, _)| *name).collect::<Vec<_>>(),
    });
    Output::new(out, args.json).record(&described(said, &restored.contents), ORDER)
}

fn database(source: &Source) -> Result<PathBuf, Failure> {
    let config = Config::load(source).map_err(|problems| Failure::Usage(problems.to_string()))?;
    Ok(backends::database(&config.settings))
}

/// What is in the copy, besides what was `said` of it.
fn described(mut said: Value, contents: &Contents) -> Value {
    said["bytes"] = contents.bytes.into();
    said["schema_version"] = contents.schema_version.into();
    said["rows"] = contents.rows.iter().map(|(table, rows)| (table.clone(), Value::from(*rows))).collect();
    said
}

/// A file that was named wrongly is an error of the command line; all else is not.
fn failure(error: &CopyError, hint: &str) -> Failure {
    let said = format!("{error}{hint}");
    match error {
        CopyError::Missing { .. }
        | CopyError::Exists { .. }
        | CopyError::Database(OpenError::Foreign { .. } | OpenError::NotADatabase { .. }) => {
            Failure::Usage(said)
        }
        _ => Failure::Refused(said),
    }
}

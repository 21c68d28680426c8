//! `carillon store check`.

use super::Place;
use crate::backends;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::config::{Config, Source};
use carillon_backend::check::{Checked, Severity};
use serde_json::{Value, json};
use std::io::Write;

/// What `carillon store check` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store: sqlite:PATH (a database, or a node's data folder) or postgresql://…; without it, the one of the settings
    #[arg(long, value_name = "STORE")]
    url: Option<Place>,
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks a store.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut settings =
        Config::load(&args.source).map_err(|problems| Failure::Usage(problems.to_string()))?.settings;
    let place = match &args.url {
        Some(place) => place.clone(),
        None if settings.node.store_url.is_empty() => Place::Sqlite(backends::database(&settings)),
        None => Place::Postgres(settings.node.store_url.clone()),
    };
    let checked = match place {
        Place::Sqlite(path) => backends::check_embedded(&path),
        Place::Postgres(url) => {
            settings.node.store_url = url;
            let options = backends::postgres::options(&settings).map_err(Failure::Usage)?;
            backends::postgres::check(options)
        }
    };
    let checked = checked.map_err(Failure::Refused)?;
    print(&checked, &mut Output::new(out, args.json))?;
    if checked.is_well() { Ok(()) } else { Err(Failure::Refused("the store is not in order".to_owned())) }
}

fn print(checked: &Checked, out: &mut Output<'_>) -> Result<(), Failure> {
    let findings: Vec<Value> = checked
        .findings
        .iter()
        .map(|finding| {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            json!({"severity": severity, "what": finding.what, "rows": finding.rows, "example": finding.example})
        })
        .collect();
    if !out.is_json() {
        for finding in &findings {
            out.text(&format!("{}\n", line(finding)))?;
        }
    }
    let Checked { schema_version, schema_known, rules, .. } = checked;
    let said = format!(
        "schema version {schema_version}, {rules} rules, {}",
        if findings.is_empty() { "nothing found".to_owned() } else { format!("{} findings", findings.len()) }
    );
    out.done(
        &said,
        &json!({
            "schema_version": schema_version,
            "schema_known": schema_known,
            "rules": rules,
            "well": checked.is_well(),
            "findings": findings,
        }),
    )
}

fn line(finding: &Value) -> String {
    let (severity, what) = (&finding["severity"], &finding["what"]);
    let said = format!("{}: {}", severity.as_str().unwrap_or_default(), what.as_str().unwrap_or_default());
    match (finding["rows"].as_u64(), finding["example"].as_str()) {
        (None | Some(0), _) => said,
        (Some(rows), Some(example)) if !example.is_empty() => format!("{said}: {rows}, such as {example}"),
        (Some(rows), _) => format!("{said}: {rows}"),
    }
}

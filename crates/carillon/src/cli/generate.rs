//! `carillon account generate`: many accounts with random passwords, for a test or a first roll-out.

use super::client::{Client, Query};
use super::failure::Failure;
use super::import;
use super::output::Output;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What `carillon account generate` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How many accounts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Beginning of the accounts' names; a number from 0 on follows
    #[arg(long)]
    prefix: String,
    /// Domain of the accounts; by default that of the node
    #[arg(long)]
    domain: Option<String>,
    /// File to write the accounts and their passwords to, which must not exist; without it, they are printed
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// The first line of the CSV.
const HEADER: &str = "jid,password\n";
/// Random bytes of a password: 128 bits.
const PASSWORD_BYTES: usize = 16;
/// Rows of a page of accounts.
const PAGE_ROWS: usize = 1000;

/// Creates the accounts. Each is written down before it is created: should the node end in the middle, `account import`
/// creates the rest from the same file.
pub(super) fn run(client: &Client, args: Args, output: &mut Output<'_>) -> Result<(), Failure> {
    let domain = match args.domain {
        Some(domain) => domain,
        None => default_domain(client)?,
    };
    refuse_existing(client, &domain, &args.prefix, args.count)?;
    let mut file = match &args.csv {
        Some(path) => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            Some(opened.map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?)
        }
        None => None,
    };
    let mut write = |text: &str, output: &mut Output<'_>| match &mut file {
        Some(file) => Ok(file.write_all(text.as_bytes())?),
        None if output.is_json() => Ok(()),
        None => output.text(text),
    };
    write(HEADER, output)?;
    let mut made = Vec::new();
    for first in (0..args.count).step_by(import::CHUNK_LINES) {
        let last = args.count.min(first + import::CHUNK_LINES as u32);
        let (mut csv, mut body) = (String::new(), Vec::new());
        for number in first..last {
            let (jid, password) = (format!("{}{number}@{domain}", args.prefix), password()?);
            csv.push_str(&format!("{jid},{password}\n"));
            let record = json!({ "jid": jid, "password": password });
            body.extend_from_slice(format!("{record}\n").as_bytes());
            if output.is_json() {
                made.push(record);
            }
        }
        write(&csv, output)?;
        let given = import::give(client, &body)?;
        if let Some((_, why)) = given.errors.first() {
            return Err(Failure::Refused(format!("{}{first}@{domain}: {why}", args.prefix)));
        }
    }
    match &args.csv {
        _ if output.is_json() => output.record(&json!({ "accounts": made }), &[]),
        Some(path) => {
            let (prefix, last) = (&args.prefix, args.count - 1);
            output.text(&format!(
                "created {prefix}0@{domain} to {prefix}{last}@{domain}; {} has their passwords\n",
                path.display()
            ))
        }
        None => Ok(()),
    }
}

fn default_domain(client: &Client) -> Result<String, Failure> {
    let domains = client.get("/v1/admin/domains")?;
    let domain = domains.get("default_domain").and_then(Value::as_str).map(str::to_owned);
    domain.ok_or_else(|| Failure::Usage("give --domain".to_owned()))
}

/// Nobody's password is replaced: an account that has one of the names is an error.
fn refuse_existing(client: &Client, domain: &str, prefix: &str, count: u32) -> Result<(), Failure> {
    let path = Query::of("/v1/admin/accounts").with("domain", domain).with("limit", &PAGE_ROWS.to_string());
    // Accounts come in the order of their names: those that begin with the prefix follow it.
    let mut after = prefix.to_owned();
    loop {
        let page = client.get(&path.clone().with("after", &after).0)?;
        for account in page.get("accounts").and_then(Value::as_array).into_iter().flatten() {
            let jid = account.get("jid").and_then(Value::as_str).unwrap_or_default();
            let Some(number) = jid.split('@').next().and_then(|name| name.strip_prefix(prefix)) else {
                return Ok(());
            };
            let is_plain = number == "0" || !number.starts_with('0');
            if is_plain && number.parse::<u32>().is_ok_and(|number| number < count) {
                return Err(Failure::Refused(format!("{jid} exists already: choose another --prefix")));
            }
        }
        match page.get("next").and_then(Value::as_str) {
            Some(next) => after = next.to_owned(),
            None => return Ok(()),
        }
    }
}

fn password() -> Result<String, Failure> {
    let mut bytes = [0; PASSWORD_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| Failure::Usage(format!("no randomness for a password: {e}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

//! `carillon account export`: all that a node keeps of an account, for its person; or what another server takes of it.

mod piefxis;

use super::client::{Client, Query};
use super::failure::Failure;
use super::output::Output;
use crate::web::segment;
use piefxis::User;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An archive of millions of messages takes minutes.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// What is exported, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Bare JID of the account, such as alice@localhost
    #[arg(required_unless_present = "domain")]
    jid: Option<String>,
    /// All accounts of this domain, into a folder: a file for each, and DOMAIN.xml, which includes them
    #[arg(long, conflicts_with = "jid", requires = "output", value_name = "DOMAIN")]
    domain: Option<String>,
    /// Lines of JSON, with all that is kept, for the person whose it is; or XML that other servers import, with password keys
    #[arg(long, value_parser = ["json", "xep-0227"], default_value = "json")]
    format: String,
    /// File to write, or folder for a domain; by default standard output. It is made readable by its owner alone, and must not be there
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Does what is said.
pub(super) fn run(client: &Client, args: &Args, output: &mut Output<'_>) -> Result<(), Failure> {
    let file = args.output.as_deref();
    match (&args.jid, &args.domain, &*args.format) {
        (Some(jid), _, "json") => json_lines(client, &path(jid), file, output),
        (Some(jid), ..) => one(client, jid, file, output),
        (None, Some(domain), "xep-0227") => {
            let folder = file.ok_or_else(|| Failure::Usage("--output names the folder".to_owned()))?;
            all(client, domain, folder, output)
        }
        (None, ..) => Err(Failure::Usage("a domain is exported with --format xep-0227".to_owned())),
    }
}

fn path(jid: &str) -> String {
    format!("/v1/admin/accounts/{}", segment(jid))
}

/// Writes the lines to a file, or prints them.
fn json_lines(
    client: &Client,
    account: &str,
    file: Option<&Path>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let account = format!("{account}/export");
    let Some(path) = file else {
        return lines(client, &account, &mut |line| output.text(&format!("{line}\n"))).map(drop);
    };
    let mut file = BufWriter::new(created(path)?);
    let records = lines(client, &account, &mut |line| Ok(writeln!(file, "{line}")?))?;
    file.flush()?;
    let said = format!("wrote {records} records to {}", path.display());
    output.done(&said, &json!({ "records": records, "file": path.display().to_string() }))
}

/// Writes an account as other servers import it.
fn one(client: &Client, jid: &str, file: Option<&Path>, output: &mut Output<'_>) -> Result<(), Failure> {
    let (bytes, passed) = user(client, jid)?;
    tell_passed(&passed);
    let Some(path) = file else {
        return output.text(&String::from_utf8_lossy(&bytes));
    };
    created(path)?.write_all(&bytes)?;
    let said = format!("wrote {jid} to {}", path.display());
    output.done(&said, &json!({ "accounts": 1, "file": path.display().to_string(), "left_out": passed }))
}

/// Writes all accounts of a domain, account by account, so that there may be any number of them.
fn all(client: &Client, domain: &str, folder: &Path, output: &mut Output<'_>) -> Result<(), Failure> {
    let wrong = |path: &Path, error: &std::io::Error| Failure::Usage(format!("{}: {error}", path.display()));
    std::fs::DirBuilder::new().mode(0o700).create(folder).map_err(|error| wrong(folder, &error))?;
    let listed = Query::of("/v1/admin/accounts").with("domain", domain);
    let (mut files, mut passed) = (Vec::new(), BTreeMap::new());
    for account in client.list(&listed.0, "accounts", usize::MAX)? {
        let Some(jid) = account["jid"].as_str() else { continue };
        // One that was removed meanwhile is not there.
        let (bytes, left_out) = match user(client, jid) {
            Err(Failure::Missing(_)) => continue,
            done => done?,
        };
        left_out.into_iter().for_each(|(kind, count)| *passed.entry(kind).or_default() += count);
        let name = file_name(jid);
        created(&folder.join(&name))?.write_all(&bytes)?;
        files.push(name);
    }
    let main = folder.join(format!("{domain}.xml"));
    created(&main)?.write_all(&piefxis::main(domain, &files))?;
    tell_passed(&passed);
    let said = format!("wrote {} accounts to {}", files.len(), main.display());
    let told = json!({ "accounts": files.len(), "file": main.display().to_string(), "left_out": passed });
    output.done(&said, &told)
}

/// An account as the form has it, and what it has no place for.
fn user(client: &Client, jid: &str) -> Result<(Vec<u8>, BTreeMap<String, u64>), Failure> {
    let mut user = None;
    lines(client, &format!("{}/export?credentials=true", path(jid)), &mut |line| {
        // The first line has the address as the node knows it.
        let user = user.get_or_insert_with(|| {
            let known = line["jid"].as_str().unwrap_or(jid);
            let (name, host) = known.split_once('@').unwrap_or((known, ""));
            User::new(name, host)
        });
        user.take(line);
        Ok(())
    })?;
    let user = user.ok_or_else(|| Failure::Refused(format!("the node said nothing of {jid}")))?;
    let passed = user.passed().clone();
    Ok((user.file(), passed))
}

fn tell_passed(passed: &BTreeMap<String, u64>) {
    for (kind, count) in passed {
        eprintln!("left out, {count} times, because the form has no place for it: {kind}");
    }
}

/// A name for the file of an account, as Prosody looks for it. A local part has no `/`; what else a file system may not like is percent-encoded.
fn file_name(jid: &str) -> String {
    let mut name = String::with_capacity(jid.len() + 4);
    for letter in jid.chars() {
        match letter {
            '/' | '\\' | ':' | '%' => name.push_str(&segment(&letter.to_string())),
            letter => name.push(letter),
        }
    }
    name + ".xml"
}

/// Nobody else is to read it, and nothing that is there is written over.
fn created(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Gives each line to `take`; how many records there were.
fn lines(
    client: &Client,
    path: &str,
    take: &mut dyn FnMut(&Value) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut end = None;
    client.each_line(path, PATIENCE, &mut |line| {
        match line["kind"].as_str() {
            Some("end") => end = line["records"].as_u64(),
            Some("error") => {
                let detail = line["detail"].as_str().unwrap_or_default();
                return Err(Failure::Refused(format!("the export is not whole: {detail}")));
            }
            _ => {}
        }
        take(line)
    })?;
    end.ok_or_else(|| Failure::Refused("the export is not whole: the node's answer ended early".to_owned()))
}

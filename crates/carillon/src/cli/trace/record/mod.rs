//! `carillon trace record`: what happened becomes a conversation that the tests replay.

mod conversation;
mod redact;

use super::{What, follow};
use crate::cli::client::Query;
use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use conversation::Conversation;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;

/// What `carillon trace record` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Bare JID or local part of the account
    #[arg(value_name = "JID")]
    account: String,
    #[command(flatten)]
    what: What,
    /// File to write, such as bug.chat
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Does what is said.
pub(super) fn run(remote: &Remote, mut args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    args.what.payloads = true;
    args.what.kinds = ["in", "out", "session"].map(str::to_owned).to_vec();
    let path = Query::of("/v1/admin/sessions").with("account", &args.account);
    let present = remote.client()?.list(&path.0, "sessions", 1000)?;
    let mut lines: Vec<Value> = Vec::new();
    follow(remote, &args.account, &args.what, &mut |line| {
        lines.push(line.clone());
        Ok(())
    })?;
    let account = lines.first().and_then(|line| line["account"].as_str()).unwrap_or_default().to_owned();
    let mut conversation = Conversation::new(&account, &lines);
    present.iter().for_each(|session| conversation.is_present(session));
    lines.iter().for_each(|line| conversation.add(line));
    let (text, left_out) = conversation.text();
    let file = args.output.display();
    std::fs::write(&args.output, text).map_err(|e| Failure::Usage(format!("{file}: {e}")))?;
    let said = format!("wrote {file}: {} lines of the trace, {left_out} left out", lines.len());
    let value = serde_json::json!({ "file": file.to_string(), "lines": lines.len(), "left_out": left_out });
    remote.output(out).done(&said, &value)
}

//! `carillon status`: the figures of a node.

use super::failure::Failure;
use super::remote::Remote;
use std::io::Write;

/// What `carillon status` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// Prints the figures.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let status = args.remote.client()?.get("/v1/admin/status")?;
    args.remote.output(out).record(&status)
}

//! The command line: one file per command, and the client that speaks to a running node.
//!
//! What a node has is managed by the same verbs: `list`, `show`, `create`, `set`, `delete`. Verbs of earlier releases are hidden aliases.
//!
//! Exit codes: 0 done, 1 the node said no, 2 the command line or the configuration is wrong, 3 no node answers.

mod account;
mod audit;
mod autoscale;
mod backup;
mod broadcast;
mod cells;
mod client;
mod cluster;
mod config;
mod confirm;
mod connect;
mod domain;
mod drain;
mod dump;
mod events;
mod export;
mod failure;
mod generate;
mod import;
mod invitation;
mod key;
mod link;
mod matches;
#[cfg(test)]
mod mentioned;
mod module;
mod notification;
mod output;
mod password;
mod push;
mod queue;
mod remote;
mod room;
mod send;
mod session;
mod shell;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod top;
mod topic;
mod trace;
mod upgrade;
mod webhook;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// XMPP server that reaches millions of connected devices and people.
#[derive(Debug, Parser)]
#[command(name = "carillon", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node
    Serve(crate::serve::Args),
    /// Run a node with three demo devices
    Demo(crate::demo::Args),
    /// Load-test a server with many clients
    Load(Box<carillon_load::cli::Cli>),
    #[command(flatten)]
    Printing(Printing),
}

/// A command that prints something and ends.
#[derive(Debug, Subcommand)]
enum Printing {
    /// Log in as a device and print what comes
    Connect(Box<connect::Args>),
    /// Show the figures of a node
    Status(status::Args),
    /// End the sessions of a node gradually; it takes no new ones
    Drain(drain::Args),
    /// Durable queues that a node takes messages from, and their dead letters
    Queue(queue::Args),
    /// The cell of several nodes: how it is, where things are, draining and burying a node
    Cluster(cluster::Args),
    /// The cells of a front: adding, draining, moving devices
    Cells(cells::Args),
    /// Replace the program of a running node, keeping all its sessions and connections
    ///
    /// The node is found by its data folder, not by a URL: what runs a program is for the machine's operator. Exit code 0: the new
    /// process serves the node; 1: it does not, and if it refused, the old one goes on; 3: no node runs there.
    Upgrade(upgrade::Args),
    /// Domains: the tenants of a node
    Domain(domain::Args),
    /// Accounts of people and devices
    Account(account::Args),
    /// API keys
    Key(key::Args),
    /// Administrative acts: what was done by which key
    Audit(audit::Args),
    /// Topics: channels that many follow
    Topic(topic::Args),
    /// Broadcasts: notifications for every account of a domain
    Broadcast(broadcast::Args),
    /// Rooms: conversations of many
    Room(room::Args),
    /// Real-time matches: showing, ending and replaying them
    Match(matches::Args),
    /// Webhooks: URLs that are told how notifications ended
    Webhook(webhook::Args),
    /// Registrations for push: apps that are woken by push services
    Push(push::Args),
    /// Modules: extensions in WebAssembly, activated while the node runs
    Module(module::Args),
    /// Short links, and the files of the apps that open them
    Link(link::Args),
    /// Invitations: tokens by which people register accounts
    Invitation(invitation::Args),
    /// Send a notification
    Send(send::Args),
    /// Notifications that were sent: list, show, cancel
    Notification(notification::Args),
    /// Live sessions
    Session(session::Args),
    /// A prompt for the commands that speak to a node; read-only unless it is started with a reason
    Shell(shell::Args),
    /// The accounts of a node that cost most
    Top(top::Args),
    /// What each shard of a node was given last, from its flight recorder
    Dump(dump::Args),
    /// Follow the sessions of an account: what they send and are sent, and what becomes of it
    Trace(trace::Args),
    /// The autoscaler: simulate it, run it, explain its decisions
    Autoscale(autoscale::Args),
    /// Settings: check, explain, print
    Config(config::Args),
    /// The event log: follow it, check it, print it as JSON
    Events(events::Args),
    /// Copy the database to a file, while the node runs or not, and check the copy
    Backup(backup::Backup),
    /// Put a backup into a data folder that no node uses
    Restore(backup::Restore),
    /// The store: copy it between SQLite and PostgreSQL, check it
    Store(store::Args),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands into a folder, as packages do
    #[command(hide = true)]
    Man {
        /// The folder, which must exist
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// Reads the command line of this process and does what it says.
pub fn main() -> ExitCode {
    // Not locked: what a node prints comes from many threads.
    match Cli::parse().command {
        Command::Serve(args) if crate::successor::is_successor() => crate::successor::run(&args),
        Command::Serve(args) => crate::serve::run(&args),
        Command::Demo(args) => crate::demo::run(&args),
        Command::Load(cli) => {
            carillon_load::cli::run(&cli, carillon_load::cli::Program { prefix: &["load"] })
        }
        Command::Printing(command) => match print(command, &mut std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        },
    }
}

/// Does what a command says, printing to `out`.
fn print(command: Printing, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Printing::Connect(args) => connect::run(&args, out),
        Printing::Status(args) => status::run(&args, out),
        Printing::Drain(args) => drain::run(&args, out),
        Printing::Cluster(args) => cluster::run(args, out),
        Printing::Cells(args) => cells::run(args, out),
        Printing::Queue(args) => queue::run(args, out),
        Printing::Upgrade(args) => upgrade::run(&args, out),
        Printing::Domain(args) => domain::run(args, out),
        Printing::Account(args) => account::run(args, out),
        Printing::Key(args) => key::run(args, out),
        Printing::Audit(args) => audit::run(&args, out),
        Printing::Topic(args) => topic::run(args, out),
        Printing::Broadcast(args) => broadcast::run(args, out),
        Printing::Room(args) => room::run(args, out),
        Printing::Match(args) => matches::run(args, out),
        Printing::Module(args) => module::run(args, out),
        Printing::Webhook(args) => webhook::run(args, out),
        Printing::Push(args) => push::run(args, out),
        Printing::Link(args) => link::run(args, out),
        Printing::Invitation(args) => invitation::run(args, out),
        Printing::Send(args) => send::run(&args, out),
        Printing::Notification(args) => notification::run(args, out),
        Printing::Session(args) => session::run(args, out),
        Printing::Shell(args) => shell::run(args, out),
        Printing::Top(args) => top::run(&args, out),
        Printing::Dump(args) => dump::run(&args, out),
        Printing::Trace(args) => trace::run(args, out),
        Printing::Autoscale(args) => autoscale::run(&args, out),
        Printing::Config(args) => config::run(args, out),
        Printing::Events(args) => events::run(args, out),
        Printing::Backup(args) => backup::backup(&args, out),
        Printing::Restore(args) => backup::restore(&args, out),
        Printing::Store(args) => store::run(&args, out),
        Printing::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "carillon", &mut script);
            Ok(out.write_all(&script)?)
        }
        Printing::Man { folder } => clap_mangen::generate_to(Cli::command(), &folder)
            .map_err(|e| Failure::Usage(format!("{}: {e}", folder.display()))),
    }
}

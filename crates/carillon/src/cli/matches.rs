//! `carillon match`: real-time matches, as they are played and as they were.

use super::client::{Client, Query};
use super::confirm::confirm;
use super::failure::Failure;
use super::output::Output;
use super::remote::Remote;
use crate::web::segment;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_wire::frame::game::{SERVER_BYTES_MAX, ServerFrame, TickInputs, cut};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

/// What `carillon match` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain of the match; by default that of the node
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show a match that is played
    Show {
        /// Name of the match
        id: String,
    },
    /// End a match; its players are told that the node ended it
    End {
        /// Name of the match
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print the ticks of a match that is played, or was a while ago
    ///
    /// A line for each tick: the input of each seat in hexadecimal, `*` where its last input counts again.
    Replay {
        /// Name of the match
        id: String,
        /// Print each tick when it was played
        #[arg(long)]
        play: bool,
        /// Only ticks from this one on
        #[arg(long, value_name = "TICK", default_value_t = 1)]
        from: u32,
    },
}

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let at = |path: String| Query::of(path).with_some("domain", args.domain.as_deref()).0;
    let path = |id: &str| format!("/v1/matches/{}", segment(id));
    match args.command {
        Command::Show { id } => {
            let shown = client.get(&at(path(&id)))?;
            output.record(&shown, &["match", "queue", "mode", "module", "tick", "running"])
        }
        Command::End { id, yes } => {
            confirm(yes, &format!("ends the match {id} for all who play it"))?;
            let ended = client.delete(&at(path(&id)))?;
            output.done(&format!("ended {id}"), &ended)
        }
        Command::Replay { id, play, from } => {
            replay(&client, &at(format!("{}/replay", path(&id))), play, from, &mut output)
        }
    }
}

fn replay(
    client: &Client,
    path: &str,
    play: bool,
    from: u32,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let replay = client.get(path)?;
    if output.is_json() {
        return output.done("", &replay);
    }
    output.text(&head(&replay))?;
    let rate = replay.get("tick_rate").and_then(Value::as_u64).unwrap_or(1).max(1);
    let frames = replay.get("frames").and_then(Value::as_str).unwrap_or_default();
    let frames = STANDARD.decode(frames).map_err(|_| unreadable())?;
    let (mut rest, mut printed, began) = (&frames[..], 0_u64, Instant::now());
    while let Some((frame, behind)) = cut(rest, SERVER_BYTES_MAX).map_err(|_| unreadable())? {
        rest = behind;
        let frame = ServerFrame::read(frame).map_err(|_| unreadable())?;
        let ServerFrame::Tick { header, inputs } = frame else { return Err(unreadable()) };
        if header.tick < from {
            continue;
        }
        let due = Duration::from_millis(printed * 1000 / rate);
        if let Some(wait) = due.checked_sub(began.elapsed()).filter(|_| play) {
            std::thread::sleep(wait);
        }
        printed += 1;
        output.text(&line(header.tick, &inputs))?;
    }
    Ok(())
}

/// What is known of the match as a whole.
fn head(replay: &Value) -> String {
    let text = |name: &str| match replay.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let accounts = replay.get("accounts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut head = format!(
        "# {} of {}: {}, {} ticks per second, seed {}, ticks {} to {}\n",
        text("match"),
        text("queue"),
        text("mode"),
        text("tick_rate"),
        text("seed"),
        text("from"),
        text("tick"),
    );
    for (seat, account) in accounts.iter().enumerate() {
        let _ = writeln!(head, "# seat {seat}: {}", account.as_str().unwrap_or_default());
    }
    if let Some(module) = replay.get("module").and_then(Value::as_str) {
        let _ = writeln!(head, "# module {module}");
    }
    if let Some(result) = replay.get("result") {
        let reason = result.get("reason").and_then(Value::as_str).unwrap_or_default();
        let outcome = result.get("outcome").and_then(Value::as_str).unwrap_or_default();
        let outcome = STANDARD.decode(outcome).unwrap_or_default();
        let outcome = super::output::printable(&String::from_utf8_lossy(&outcome));
        let _ = writeln!(head, "# {reason} {outcome}");
    }
    head
}

fn line(tick: u32, inputs: &TickInputs<'_>) -> String {
    let mut seats: Vec<(u8, String)> = Vec::new();
    inputs.each(|seat, input| {
        seats.push((seat, input.iter().map(|byte| format!("{byte:02x}")).collect()));
    });
    seats.extend((0..64).filter(|seat| inputs.repeated & 1 << seat != 0).map(|seat| (seat, "*".to_owned())));
    seats.sort_unstable();
    let mut line = tick.to_string();
    for (seat, input) in seats {
        let _ = write!(line, " {seat}={input}");
    }
    line.push('\n');
    line
}

fn unreadable() -> Failure {
    Failure::Refused("the node sent ticks that cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_a_line() {
        let mut frame = Vec::new();
        let mut payload = Vec::new();
        TickInputs::put(&mut payload, 0b101, 0b010, [&b"a"[..], b""].into_iter());
        ServerFrame::write_tick(&mut frame, carillon_wire::frame::game::Header::at(17), &payload);
        let Ok(ServerFrame::Tick { header, inputs }) = ServerFrame::read(&frame) else { panic!() };
        assert_eq!(line(header.tick, &inputs), "17 0=61 1=* 2=\n");
    }
}

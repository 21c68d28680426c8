//! What the terms of a report mean, in a sentence without its full stop.

/// From when to when a metric counts; empty for one that is not known.
pub(super) fn metric(name: &str) -> &'static str {
    match name {
        "login" => "from when a login was due to the bound session",
        "resume" => "from when the return of a player was due to the resumed stream",
        "RTT" => "from when a message, item or notification was due to its receipt by a player",
        "last_delivery" => {
            "from when an item (or a message of a room of all) was due to its receipt by the last"
        }
        "receipt" => "from when a notification was due to the report of its acknowledgement",
        "roster" => "from a player's session to its roster",
        "contacts" => "from a player's session to the presence of the last contact that was there before it",
        "presence" => "from the presence of the second of two contacts to its receipt by one of them",
        "page" => "from the request for a page of an archive to its end",
        "gone" => "from the drop of all connections to when the server shows no session of the test",
        "silence" => {
            "the longest time after the command in which something was due to a player and nothing came"
        }
        "silence_before" => "the same before the command",
        _ => "",
    }
}

/// What a rate counts.
pub(super) fn rate(name: &str) -> &'static str {
    match name {
        "logins" => "Logins per second, over the phases in which there were any",
        "sent" => "Messages, items or notifications sent per second, over the phases in which there were any",
        "deliveries" => "What players received per second, over the phases in which there was any",
        "receipts" => "Acknowledgements of notifications per second, over the phases in which there were any",
        "streams_resumed" => "Streams resumed per second, over the phases in which there were any",
        _ => "",
    }
}

/// Of the server's CPU time.
pub(super) const CPU: &str =
    "CPU time of the server's processes in the last phase that had such events, divided by their number";
/// Of the server's memory.
pub(super) const MEMORY: &str = "Growth of the server's memory since before the first login, divided by the connections, in the last phase in \
     which all were idle";
/// Of the workers' clocks.
pub(super) const CLOCK: &str = "<b>clock error</b>: how far the clock of a worker may be from that of the orchestrator. \
     Latencies between two workers are uncertain by as much.";

#[cfg(test)]
mod tests {
    #[test]
    fn every_metric_of_the_manual_is_explained() {
        let manual = include_str!("../../../../docs/book/load.md");
        let table =
            manual.split("| metric | begins, ends |").nth(1).and_then(|rest| rest.split("\n\n").next());
        let names = table.expect("the table of metrics").lines().filter_map(|line| line.strip_prefix("| `"));
        let names: Vec<_> =
            names.flat_map(|line| line.split(" | ").next()).flat_map(|cell| cell.split(", ")).collect();
        assert!(names.len() > 6, "{names:?}");
        for name in names {
            assert!(!super::metric(name.trim_matches('`')).is_empty(), "{name}");
        }
    }
}

//! The figures of matches and the matchmaker.

use super::one;
use crate::exposition::Page;
use carillon_core::shard::MatchFigures;
use carillon_server::metrics::QuicFigures;

pub(super) fn matches(page: &mut Page, figures: &MatchFigures) {
    page.gauge("carillon_matches", "Matches that are played now.", figures.matches);
    page.gauge("carillon_match_players", "Players connected to their matches now.", figures.players);
    page.gauge("carillon_match_spectators", "Connections that watch matches now.", figures.spectators);
    page.gauge("carillon_matchmaking_queues", "Queues of the matchmaker now.", figures.queues);
    page.gauge("carillon_matchmaking_waiting", "Tickets that wait for a match now.", figures.waiting);
    let help = "Tickets that found no match in time.";
    page.counter("carillon_matchmaking_expired_total", help, figures.tickets_expired);
    page.counter("carillon_matches_begun_total", "Matches that began.", figures.begun);
    let help =
        "Matches that the node did not take, because it has too many, drains, or closes ticks too late.";
    page.counter("carillon_matches_refused_total", help, figures.refused);
    page.counters(
        "carillon_matches_ended_total",
        "Matches that ended, by reason.",
        "reason",
        figures.ended.iter(),
    );
    let help = "Players that took a seat, those that came back included.";
    page.counter("carillon_match_joins_total", help, figures.joined);
    page.counter("carillon_match_rejoins_total", "Players that came back to their seat.", figures.rejoined);
    let help =
        "Inputs of players: `in_time`, `late` for their tick, or `repeated` for one that did not come.";
    let inputs =
        [("in_time", figures.inputs), ("late", figures.inputs_late), ("repeated", figures.inputs_repeated)];
    page.counters("carillon_match_inputs_total", help, "result", inputs);
    page.counter("carillon_match_ticks_total", "Ticks of matches.", figures.ticks);
    page.counter("carillon_match_frames_total", "Ticks given to connections of players.", figures.frames);
    let help = "Ticks after which the clients of a match had different states.";
    page.counter("carillon_match_desyncs_total", help, figures.desyncs);
    page.gauge("carillon_matches_authoritative", "Matches now that a module decides.", figures.authoritative);
    let help = "Fuel that modules used for matches.";
    page.counter("carillon_match_module_fuel_total", help, figures.module_fuel);
    let help = "Failures of modules that decide matches, by kind.";
    page.counters("carillon_match_module_failures_total", help, "failure", figures.module_failures.iter());
    let help = "Matches that another version of their module took over between two ticks.";
    page.counter("carillon_match_module_swaps_total", help, figures.module_swaps);
    let help = "Snapshots given to connections of players.";
    page.counter("carillon_match_snapshots_total", help, figures.snapshots);
    let help = "States that players were asked for: `taken`, or `refused`, because most have another.";
    let states = [("taken", figures.snapshots_taken), ("refused", figures.snapshots_refused)];
    page.counters("carillon_match_states_total", help, "result", states);
    let help = "Errors sent to players, by code.";
    page.counters("carillon_match_errors_total", help, "code", figures.errors.iter());
    let help = "How late ticks were closed.";
    one(page, "carillon_match_tick_lateness_seconds", help, &figures.lateness);
    let help = "How long tickets waited for their match.";
    one(page, "carillon_matchmaking_wait_seconds", help, &figures.waited);
}

pub(super) fn quic(page: &mut Page, figures: &QuicFigures) {
    page.gauge("carillon_quic_connections", "Connections of QUIC now.", figures.connections);
    let help = "Connections of QUIC accepted.";
    page.counter("carillon_quic_accepted_total", help, figures.accepted);
    let help = "Clients that were asked to show that they have their address, by a Retry.";
    page.counter("carillon_quic_retries_total", help, figures.retried);
    let help = "Connections of QUIC that moved to the shard of their match.";
    page.counter("carillon_quic_moved_total", help, figures.moved);
    let help = "Packets of QUIC that one shard received for another.";
    page.counter("carillon_quic_passed_on_total", help, figures.passed_on);
    let help = "Packets of QUIC: `in`, `out`, or `unsent` because the system did not take them.";
    let packets =
        [("in", figures.packets_in), ("out", figures.packets_out), ("unsent", figures.packets_unsent)];
    page.counters("carillon_quic_packets_total", help, "direction", packets);
    let help = "Datagrams of players: `in`, `out`, `dropped` because a player sent too much, or `fallback` to the stream because they were \
                too long.";
    let datagrams = [
        ("in", figures.datagrams_in),
        ("out", figures.datagrams_out),
        ("dropped", figures.datagrams_dropped),
        ("fallback", figures.fallbacks),
    ];
    page.counters("carillon_quic_datagrams_total", help, "result", datagrams);
}

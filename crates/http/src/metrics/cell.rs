//! The figures of a node in its cell, where it is in one.

use crate::exposition::{Labels, Page, labels};
use carillon_core::model::{Epoch, NodeId};
use carillon_core::ports::Subject;
use carillon_core::ports::bus::{BusFigures, Traffic};
use carillon_server::metrics::Status;
use carillon_server::{CellView, HomeMoves, MemberState, MemberView, Node};
use std::collections::BTreeMap;
use std::time::Instant;

/// What is known of the cell.
pub(super) struct Cell {
    pub(super) view: CellView,
    pub(super) bus: BusFigures,
    /// How many of the 256 partitions of names are at home on each node.
    pub(super) homes: BTreeMap<NodeId, u16>,
    pub(super) moves: HomeMoves,
}

impl Cell {
    /// The cell of a node, if it is in one.
    pub(super) fn of(node: &Node) -> Option<Cell> {
        let view = node.cell()?;
        let bus = node.bus().unwrap_or_default();
        Some(Cell { view: (*view).clone(), bus, homes: node.homes(), moves: node.home_moves() })
    }

    /// The page.
    pub(super) fn text(&self, status: &Status, now: Instant) -> String {
        let mut page = Page::default();
        self.members(&mut page, now);
        self.homes(&mut page, status);
        self.bus(&mut page);
        self.traffic(&mut page);
        page.into_text()
    }

    fn members(&self, page: &mut Page, now: Instant) {
        let help = "Nodes of the cell by state, as this node sees them: `alive`, `leaving` (drained), `silent` (not heard for three seconds), \
                    `dead` (buried within the last day).";
        let count = |state| self.view.members.iter().filter(|member| member.state(now) == state).count();
        let states = MemberState::ALL.map(|state| (labels(&[("state", state.word())]), count(state)));
        page.family("carillon_cell_nodes", "gauge", help, states);
        let help = "Time since a node of the cell was heard last, in seconds. Nodes say once per second that they live.";
        let ages = self.living().filter_map(|member| Some((of(member), member.age(now)?.as_secs_f64())));
        page.family("carillon_cell_beat_age_seconds", "gauge", help, ages);
        let help = "1 while this node does not act, because the others may have buried it.";
        page.gauge("carillon_cell_fenced", help, u8::from(self.view.fence.is_some()));
        let help = "Time since the last reading of who the nodes are began that succeeded, in seconds.";
        let age = now.saturating_duration_since(self.view.read).as_secs_f64();
        page.gauge("carillon_cell_read_age_seconds", help, age);
    }

    fn homes(&self, page: &mut Page, status: &Status) {
        let help = "Partitions of the names, of 256, that are at home on a node.";
        let homes = self
            .living()
            .map(|member| (of(member), self.homes.get(&member.node).copied().unwrap_or_default()));
        page.family("carillon_cell_partitions", "gauge", help, homes);
        let help =
            "Partitions of the names that changed their node, to this one (`came`) and from it (`went`).";
        let moves = [("came", self.moves.came), ("went", self.moves.went)];
        page.counters("carillon_cell_partitions_moved_total", help, "way", moves);
        let help = "Connections between clients and sessions on different nodes: `relayed` are connections here, `carried` are sessions here.";
        let far = [("relayed", status.relayed), ("carried", status.carried)];
        let far = far.map(|(side, count)| (labels(&[("side", side)]), count));
        page.family("carillon_cell_connections", "gauge", help, far);
        let help = "Stanzas that clients of this node sent to other nodes, and of which nobody has said that they are settled.";
        page.gauge("carillon_cell_unsettled", help, status.unsettled);
        let help = "Memory of what is remembered of stanzas that are not settled on other nodes.";
        page.gauge("carillon_cell_unsettled_bytes", help, status.unsettled_bytes);
        let help = "Times that shards wrote to the log of sessions what had changed.";
        page.counter("carillon_cell_session_log_writes_total", help, status.log.writes);
        let help = "Sessions that were written to the log of sessions.";
        page.counter("carillon_cell_session_log_sessions_total", help, status.log.sessions);
        let help = "Shards whose sessions are not written down, because Redis cannot be reached.";
        page.gauge("carillon_cell_session_log_away", help, status.log.away);
        let help = "Sessions that dead nodes left, by whether they go on here: `adopted` or `lost`.";
        let left = [("adopted", status.log.adopted), ("lost", status.log.not_adopted)];
        page.counters("carillon_cell_sessions_left_total", help, "outcome", left);
    }

    fn bus(&self, page: &mut Page) {
        let help = "1 while the bus of the cell can be reached.";
        page.gauge("carillon_cell_bus_connected", help, u8::from(self.bus.is_connected));
        let help = "Bytes of records for other nodes that wait to be sent.";
        page.gauge("carillon_cell_bus_waiting_bytes", help, self.bus.waiting_bytes);
        let help =
            "Records for other nodes that were lost here: there was no room for them, or they were too long.";
        page.counter("carillon_cell_bus_dropped_total", help, self.bus.dropped);
        let help = "Times that this node was told that something of a node was lost on its way, by the subject it was on: `node` (for this node), \
                    `partition`, `all`.";
        let mut gaps = BTreeMap::new();
        for ((from, subject), count) in &self.bus.gaps {
            if let Some(member) = self.living().find(|member| epoch(member) == *from) {
                let word = subject_word(*subject);
                *gaps.entry(labels(&[("node", &member.name), ("subject", word)])).or_insert(0) += count;
            }
        }
        for member in self.living().filter(|member| member.node != self.view.own) {
            gaps.entry(labels(&[("node", &member.name), ("subject", "node")])).or_insert(0);
        }
        page.family("carillon_cell_gaps_total", "counter", help, gaps);
    }

    fn traffic(&self, page: &mut Page) {
        let posted = |member: &MemberView| self.bus.posted.get(&Subject::Node(epoch(member)));
        let taken = |member: &MemberView| self.bus.heard.get(&epoch(member));
        let others = || self.living().filter(|member| member.node != self.view.own);
        let mut family = |name, help, value: &dyn Fn(&MemberView) -> u64| {
            page.family(name, "counter", help, others().map(|member| (of(member), value(member))));
        };
        let records = |traffic: Option<&Traffic>| traffic.map_or(0, |traffic| traffic.records);
        let bytes = |traffic: Option<&Traffic>| traffic.map_or(0, |traffic| traffic.bytes);
        let help = "Records that this node posted to another one.";
        family("carillon_cell_posted_records_total", help, &|member| records(posted(member)));
        let help = "Bytes of the records that this node posted to another one.";
        family("carillon_cell_posted_bytes_total", help, &|member| bytes(posted(member)));
        let help = "Records of another node that this one took.";
        family("carillon_cell_taken_records_total", help, &|member| records(taken(member)));
        let help = "Bytes of the records of another node that this one took.";
        family("carillon_cell_taken_bytes_total", help, &|member| bytes(taken(member)));
    }

    fn living(&self) -> impl Iterator<Item = &MemberView> {
        self.view.members.iter().filter(|member| member.standing != carillon_server::Standing::Dead)
    }
}

fn of(member: &MemberView) -> Labels {
    labels(&[("node", &member.name)])
}

fn epoch(member: &MemberView) -> Epoch {
    Epoch(member.node.0.into())
}

fn subject_word(subject: Subject) -> &'static str {
    match subject {
        Subject::Node(_) => "node",
        Subject::Partition(_) => "partition",
        Subject::All => "all",
    }
}

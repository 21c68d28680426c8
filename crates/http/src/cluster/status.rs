//! Whether all is well with the cell, as one of its nodes sees it.

use super::{view, why_fenced};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::problem::Problem;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_core::ports::StoreHealth;
use carillon_core::ports::bus::BusFigures;
use carillon_server::{CellView, MemberState};
use std::time::{Duration, Instant};

/// A cell, as one of its nodes sees it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ClusterView {
    /// Whether all is well: no node is silent, this one acts, its bus and its store work.
    well: bool,
    /// What is not well, a sentence each.
    problems: Vec<String>,
    /// The name of the node that says so.
    node: String,
    /// Whether that node runs alone: it is in no cell.
    alone: bool,
    /// Whether that node has stopped acting, because the others may have buried it.
    fenced: bool,
    /// How many nodes there are, by state.
    nodes: NodeCounts,
    /// The bus of that node; left out where it runs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<BusView>,
    /// Milliseconds since the last reading of who the nodes are began that succeeded.
    read_age_ms: u64,
    /// Partitions of the names, of 256, that came to that node since its start.
    homes_came: u64,
    /// Partitions that went from it.
    homes_went: u64,
    /// Connections of that node whose sessions are on others.
    relayed: u64,
    /// Sessions of that node whose connections are on others.
    carried: u64,
    /// Stanzas that it sent to others and that nobody said are settled.
    unsettled: u64,
    /// Memory of what is remembered of them.
    unsettled_bytes: u64,
}

/// How many nodes there are in each state.
#[derive(Debug, Default, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct NodeCounts {
    /// They are heard.
    alive: u64,
    /// They are heard, and have given their homes to the others.
    leaving: u64,
    /// Nothing was heard of them for three seconds.
    silent: u64,
    /// They were buried within the last day.
    dead: u64,
}

/// A node's bus.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BusView {
    /// Whether it can be reached.
    connected: bool,
    /// Bytes that wait to be sent.
    waiting_bytes: u64,
    /// Records that were lost here, because there was no room for them.
    dropped: u64,
    /// How often this node was told that something of another node was lost.
    gaps: u64,
}

/// Read whether all is well with the cell
///
/// As the node that is asked sees it. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/cluster", operation_id = "getCluster", tag = "admin",
    responses((status = 200, description = "The cell", body = ClusterView), schema::Problems)
)]
pub(crate) async fn status(
    key: Granted<Admin>,
    State(app): State<App>,
) -> Result<Json<ClusterView>, Problem> {
    key.whole_node()?;
    let (cell, bus, now) = (view(&app), app.node.bus(), Instant::now());
    let problems = problems(&cell, bus.as_ref(), app.node.store_health(), now);
    let (figures, moves) = (app.node.status(), app.node.home_moves());
    let own = cell.members.iter().find(|member| member.node == cell.own);
    Ok(Json(ClusterView {
        well: problems.is_empty(),
        problems,
        node: own.map(|own| own.name.to_string()).unwrap_or_default(),
        alone: app.node.cell().is_none(),
        fenced: cell.fence.is_some(),
        nodes: counts(&cell, now),
        bus: bus.map(|bus| BusView {
            connected: bus.is_connected,
            waiting_bytes: bus.waiting_bytes,
            dropped: bus.dropped,
            gaps: bus.gaps.values().sum(),
        }),
        read_age_ms: millis(now.saturating_duration_since(cell.read)),
        homes_came: moves.came,
        homes_went: moves.went,
        relayed: figures.relayed,
        carried: figures.carried,
        unsettled: figures.unsettled,
        unsettled_bytes: figures.unsettled_bytes,
    }))
}

fn counts(cell: &CellView, now: Instant) -> NodeCounts {
    let of = |state| cell.members.iter().filter(|member| member.state(now) == state).count() as u64;
    NodeCounts {
        alive: of(MemberState::Alive),
        leaving: of(MemberState::Leaving),
        silent: of(MemberState::Silent),
        dead: of(MemberState::Dead),
    }
}

/// What is not well.
fn problems(cell: &CellView, bus: Option<&BusFigures>, store: StoreHealth, now: Instant) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(cell.fence.map(|fence| why_fenced(fence).to_owned()));
    if bus.is_some_and(|bus| !bus.is_connected) {
        problems.push("the bus of this node is away: nothing comes from or goes to the others".to_owned());
    }
    let unread = now.saturating_duration_since(cell.read);
    if bus.is_some() && unread > READ_MAX {
        problems.push(format!(
            "who the nodes are was read {} s ago: the store does not answer",
            unread.as_secs()
        ));
    }
    if store.fails {
        problems.push("the store fails".to_owned());
    }
    if store.may_be_damaged {
        problems.push("the store may be damaged".to_owned());
    }
    for member in cell.members.iter().filter(|member| member.state(now) == MemberState::Silent) {
        let name = &member.name;
        problems.push(match member.age(now) {
            Some(age) => format!("{name} was not heard for {} s", age.as_secs()),
            None => format!("{name} was never heard"),
        });
    }
    problems
}

/// Who the nodes are is read once per second.
pub(crate) const READ_MAX: Duration = Duration::from_secs(4);

pub(super) fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::cell::Fence;
    use carillon_core::model::NodeId;
    use carillon_server::{MemberView, Standing};

    #[test]
    fn whatever_is_not_well_is_said() {
        let now = Instant::now() + Duration::from_secs(60);
        let ago = |seconds| now - Duration::from_secs(seconds);
        let member = |name: &str, standing, heard| MemberView {
            node: NodeId(1),
            name: name.into(),
            standing,
            heard: Some(ago(heard)),
        };
        let well = CellView {
            own: NodeId(1),
            fence: None,
            read: ago(1),
            members: vec![
                member("a", Standing::Lives, 0),
                member("b", Standing::Leaves, 1),
                member("c", Standing::Dead, 50),
            ],
        };
        let bus = BusFigures { is_connected: true, ..BusFigures::default() };
        assert_eq!(problems(&well, Some(&bus), StoreHealth::default(), now), [""; 0]);
        let NodeCounts { alive, leaving, silent, dead } = counts(&well, now);
        assert_eq!((alive, leaving, silent, dead), (1, 1, 0, 1));
        let mut ill = CellView { fence: Some(Fence::Blind), read: ago(5), ..well };
        ill.members[0] = member("a", Standing::Lives, 7);
        let store = StoreHealth { fails: true, ..StoreHealth::default() };
        assert_eq!(
            problems(&ill, Some(&BusFigures::default()), store, now),
            [
                "fenced: this node cannot read the store, and others can",
                "the bus of this node is away: nothing comes from or goes to the others",
                "who the nodes are was read 5 s ago: the store does not answer",
                "the store fails",
                "a was not heard for 7 s",
            ]
        );
    }
}

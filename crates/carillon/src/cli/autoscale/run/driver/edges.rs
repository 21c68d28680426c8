//! Which edges there are, and which of them go.

use super::{Edge, EdgeState};
use carillon_scale::Granted;
use std::collections::{BTreeMap, BTreeSet};

/// What there is of edges; those that are drained are in force until they are stopped, and no units any more.
pub(super) fn granted(edges: &[Edge], leaving: &BTreeSet<String>) -> Granted {
    let stays = |edge: &&Edge| edge.state != EdgeState::Draining && !leaving.contains(&edge.id);
    let units = edges.iter().filter(stays).count() as u32;
    let in_force = edges.iter().filter(|edge| edge.state != EdgeState::Starting).count() as u32;
    Granted { units, in_force, is_changing: false, decreases_left: None }
}

/// So many edges that may go: of the fullest zone first, so that zones stay even, and of a zone those that are listed last.
pub(super) fn to_leave(edges: &[Edge], leaving: &BTreeSet<String>, count: usize) -> Vec<Edge> {
    let mut zones: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.state == EdgeState::Running && !leaving.contains(&edge.id)) {
        zones.entry(&edge.zone).or_default().push(edge);
    }
    let next = |_| {
        let fullest = zones.values_mut().max_by_key(|zone| zone.len())?;
        fullest.pop().cloned()
    };
    (0..count).map_while(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(id: &str, zone: &str, state: EdgeState) -> Edge {
        Edge { id: id.to_owned(), url: None, zone: zone.to_owned(), state }
    }

    #[test]
    fn zones_stay_even_and_nobody_is_told_twice() {
        use EdgeState::{Draining, Running, Starting};
        let edges = [
            edge("a1", "a", Running),
            edge("b1", "b", Running),
            edge("a2", "a", Running),
            edge("b2", "b", Draining),
            edge("c1", "c", Starting),
        ];
        let none = BTreeSet::new();
        let names = |edges: Vec<Edge>| edges.into_iter().map(|edge| edge.id).collect::<Vec<_>>();
        assert_eq!(names(to_leave(&edges, &none, 1)), ["a2"]);
        assert_eq!(names(to_leave(&edges, &none, 9)), ["a2", "b1", "a1"]);
        let leaving = BTreeSet::from(["a2".to_owned()]);
        assert_eq!(names(to_leave(&edges, &leaving, 1)), ["b1"]);
        let there = granted(&edges, &leaving);
        assert_eq!((there.units, there.in_force), (3, 4));
    }
}

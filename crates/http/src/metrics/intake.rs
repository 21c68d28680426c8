//! The figures of queues that messages are taken from.

use crate::exposition::{Labels, Page, labels};
use crate::intake::{Figures, QueueState};
use crate::values::time::now;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The page, where there are queues.
pub(super) fn text(queues: &[(&str, Figures)]) -> String {
    let mut page = Page::default();
    if !queues.is_empty() {
        states(&mut page, queues);
        counts(&mut page, queues);
        depths(&mut page, queues);
    }
    page.into_text()
}

fn states(page: &mut Page, queues: &[(&str, Figures)]) {
    let help = "1 for the state that taking messages from a queue is in: `pulling`, `starting`, `resting` (the node is not ready, or ends), \
                `behind` (the store does not keep up), `away` (the queue cannot be reached), `wrong` (the queue or its settings have to be changed).";
    let of = |(name, figures): &(&str, Figures)| {
        let is = figures.state.word();
        QueueState::WORDS.map(|word| (labels(&[("queue", name), ("state", word)]), u8::from(word == is)))
    };
    page.family("carillon_intake_state", "gauge", help, queues.iter().flat_map(of));
}

fn counts(page: &mut Page, queues: &[(&str, Figures)]) {
    let mut counter = |name, help, value: fn(&Figures) -> u64| {
        page.family(name, "counter", help, each(queues, |figures| Some(value(figures))));
    };
    let help = "Deliveries of messages that came from a queue.";
    counter("carillon_intake_received_total", help, |figures| figures.received);
    let help = "Of these, deliveries of messages that had been delivered before, as far as the queue knows.";
    counter("carillon_intake_redelivered_total", help, |figures| figures.redelivered);
    let help = "Messages that were done.";
    counter("carillon_intake_accepted_total", help, |figures| figures.accepted);
    let help = "Of these, messages of which all had been done before.";
    counter("carillon_intake_repeated_total", help, |figures| figures.repeated);
    let help = "Deliveries of which the queue could not be told what became of them: they come again.";
    counter("carillon_intake_unsettled_total", help, |figures| figures.unsettled);
    let help = "Times that a queue failed when it was asked for messages.";
    counter("carillon_intake_faults_total", help, |figures| figures.faults);
    let by_reason = |counts: fn(&Figures) -> &BTreeMap<Box<str>, u64>| {
        let of = move |(name, figures): &(&str, Figures)| {
            let label = |reason: &str| labels(&[("queue", name), ("reason", reason)]);
            counts(figures).iter().map(|(reason, count)| (label(reason), *count)).collect::<Vec<_>>()
        };
        queues.iter().flat_map(of).collect::<Vec<_>>()
    };
    let help = "Messages that became dead letters, by the code of the reason.";
    page.family("carillon_intake_dead_total", "counter", help, by_reason(|figures| &figures.dead));
    let help = "Deliveries that were put back, by the code of the reason.";
    page.family("carillon_intake_put_back_total", "counter", help, by_reason(|figures| &figures.put_back));
}

fn depths(page: &mut Page, queues: &[(&str, Figures)]) {
    let mut gauge = |name, help, value: fn(&Figures) -> Option<u64>| {
        page.family(name, "gauge", help, each(queues, value));
    };
    gauge("carillon_intake_in_flight", "Deliveries under way on this node.", |figures| {
        Some(figures.in_flight)
    });
    let help = "Memory of the bodies and headers of deliveries under way on this node.";
    gauge("carillon_intake_in_flight_bytes", help, |figures| Some(figures.in_flight_bytes));
    let help = "Messages of a queue that no node was given yet. Of the queue: the same on every node.";
    gauge("carillon_intake_waiting", help, |figures| figures.depth.map(|(depth, _)| depth.waiting));
    let help = "Messages of a queue that were given to a node and are not settled. Of the queue: the same on every node.";
    gauge("carillon_intake_queue_unsettled", help, |figures| figures.depth.map(|(depth, _)| depth.unsettled));
    let help = "Dead letters of a queue. Of the queue: the same on every node.";
    gauge("carillon_intake_dead_letters", help, |figures| figures.depth.map(|(depth, _)| depth.dead));
    let help = "Age of the oldest message of a queue that is not settled, in seconds; 0 where there is none, left out where the queue cannot tell.";
    let ages = each(queues, |figures| {
        let (depth, _) = figures.depth?;
        match depth.oldest {
            Some(oldest) => Some(now().0.saturating_sub(oldest.0) as f64 / 1000.0),
            None => (depth.waiting + depth.unsettled == 0).then_some(0.0),
        }
    });
    page.family("carillon_intake_oldest_age_seconds", "gauge", help, ages);
}

fn each<V: Display>(queues: &[(&str, Figures)], value: impl Fn(&Figures) -> Option<V>) -> Vec<(Labels, V)> {
    let of = |(name, figures): &(&str, Figures)| Some((labels(&[("queue", name)]), value(figures)?));
    queues.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::ports::Depth;
    use std::time::Instant;

    #[test]
    fn a_node_without_queues_says_nothing_of_them() {
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn figures_have_the_queue_and_the_reason() {
        let depth = Depth { waiting: 3, unsettled: 2, oldest: None, dead: 1 };
        let figures = Figures {
            state: QueueState::Behind("slow".into()),
            received: 9,
            dead: BTreeMap::from([("not-json".into(), 4)]),
            depth: Some((depth, Instant::now())),
            ..Figures::default()
        };
        let empty = Figures { depth: Some((Depth::default(), Instant::now())), ..Figures::default() };
        let text = text(&[("orders", figures), ("empty", empty), ("new", Figures::default())]);
        for line in [
            r#"carillon_intake_state{queue="orders",state="behind"} 1"#,
            r#"carillon_intake_state{queue="orders",state="pulling"} 0"#,
            r#"carillon_intake_received_total{queue="orders"} 9"#,
            r#"carillon_intake_dead_total{queue="orders",reason="not-json"} 4"#,
            r#"carillon_intake_waiting{queue="orders"} 3"#,
            r#"carillon_intake_dead_letters{queue="orders"} 1"#,
            r#"carillon_intake_oldest_age_seconds{queue="empty"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains(r#"oldest_age_seconds{queue="orders"}"#), "it is not known");
        assert!(!text.contains(r#"waiting{queue="new"}"#), "it was not counted yet");
    }
}

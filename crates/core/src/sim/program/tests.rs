//! Programs of many seeds. One that fails says what `xtask sim` needs to replay it.

use super::{History, Mix, run};

/// Steps of a program: some hundred actions, and what comes of them.
const STEPS: u64 = 250;

fn each(mix: Mix, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        // Every other one is of two nodes.
        let nodes = 1 + (seed % 2) as u16;
        if let Err(failure) = run(seed, mix, nodes, STEPS, History::Nothing) {
            panic!("xtask sim --seed {seed} --steps {STEPS} --mix {mix:?} --nodes {nodes}: {failure:?}");
        }
    }
}

/// Accounts that follow their topics all along see every item from their first on, in order, once.
#[test]
fn items_come_in_order_and_once() {
    each(Mix::Publishing, 0..200);
}

/// And whatever of it is lost on its way from shard to shard.
#[test]
fn what_is_lost_between_shards_comes_from_the_store() {
    each(Mix::Losing, 0..300);
}

/// Following and leaving meanwhile: never twice, never older after newer, and the last item in the end.
#[test]
fn followers_have_the_last_item() {
    each(Mix::Following, 0..200);
}

/// Whatever becomes of the topics: in the end logins are given what the store has, and followers are told.
#[test]
fn logins_are_given_what_the_store_has() {
    each(Mix::Changing, 0..200);
}

/// Whatever becomes of links and questions: what was accepted is at the device or in the store, and nothing is sent again whose end
/// is committed.
#[test]
fn what_was_accepted_is_not_lost() {
    each(Mix::Notifying, 0..100);
}

/// And whenever the node ends.
#[test]
fn what_was_accepted_outlives_the_node() {
    each(Mix::Crashing, 0..100);
}

/// Of all kinds: what is told is so, nothing goes back, each end is one event, and nothing is lost.
#[test]
fn what_is_told_of_notifications_is_so() {
    each(Mix::Living, 0..200);
}

/// Chats: each that the server has dealt with is with its recipient, in the store or refused; in the order of its sender, and once.
#[test]
fn chats_come_in_order_and_once() {
    each(Mix::Chatting, 0..200);
    each(Mix::Breaking, 0..200);
}

/// And when connections are cut and sessions resumed.
#[test]
fn sessions_are_resumed() {
    each(Mix::Returning, 0..300);
}

/// And when somebody sends one message after the other to a client at its full address.
#[test]
fn what_is_addressed_to_a_resumed_session_comes_in_order() {
    each(Mix::Addressing, 0..300);
}

/// And when the node restarts in order, at any moment.
#[test]
fn sessions_outlive_restarts() {
    each(Mix::Restarting, 0..200);
}

/// And when it goes on in another process with its connections, at any moment.
#[test]
fn connections_outlive_processes() {
    each(Mix::Upgrading, 0..200);
}

/// And when accounts make and leave contacts.
#[test]
fn both_sides_of_a_subscription_agree() {
    each(Mix::Befriending, 0..200);
}

/// And when the node ends, restarts or goes on meanwhile.
#[test]
fn subscriptions_outlive_processes() {
    each(Mix::Reuniting, 0..200);
}

/// And when they publish what the others want to know.
#[test]
fn who_wants_to_know_is_told() {
    each(Mix::Sharing, 0..200);
}

/// Whatever becomes of processes, connections and the store.
#[test]
fn a_room_has_one_order_which_is_that_of_its_archive() {
    each(Mix::Rooming, 0..200);
}

/// Where little may wait, no more does, and what does not fit is said not to.
#[test]
fn bounds_hold() {
    each(Mix::Crowding, 0..200);
}

/// And when the system clock is set forwards and back.
#[test]
fn time_jumps() {
    each(Mix::Jumping, 0..200);
}

#[test]
fn the_same_seed_makes_the_same_history() {
    for mix in Mix::ALL {
        let [first, second] = [0; 2].map(|_| {
            let mut text = String::new();
            let done = run(7, mix, 2, STEPS, History::Text(&mut |part: &str| text.push_str(part)));
            (done.expect("nothing is wrong with it"), text)
        });
        assert_eq!(first, second, "{mix:?}");
        assert!(first.0.lines > 500, "{mix:?}: something happened");
        assert_ne!(
            Ok(first.0),
            run(8, mix, 2, STEPS, History::Hash),
            "{mix:?}: another seed is another history"
        );
    }
}

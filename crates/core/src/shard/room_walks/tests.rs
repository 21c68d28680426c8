//! What is given at once, what waits, and in which order.

use super::*;
use crate::message::{RoomAbout, RoomAudience, RoomRecipient};
use crate::model::SessionId;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{IqType, MessageType, Stanza};

const BOUNDS: Fanout = Fanout { slice: 4, waiting_deliveries: 12, waiting_bytes: 1 << 20 };

/// Stanzas of a room, by their ids, for so many clients.
fn event(room: &str, ids: &[&str], clients: u32) -> Box<RoomEvent> {
    let from = Jid::new(&format!("{room}@rooms.example.org/Ann")).unwrap();
    let said = |id: &&str| {
        RoomStanza::for_all(Stanza::message(MessageType::Groupchat).with_from(from.clone()).with_id(*id))
    };
    let recipient =
        |slot| RoomRecipient { session: SessionId { slot, generation: 1 }, sees_addresses: false };
    Box::new(RoomEvent {
        to: RoomAudience::Clients(Arc::new((0..clients).map(recipient).collect())),
        except: Vec::new(),
        stanzas: ids.iter().map(said).collect(),
        about: RoomAbout::Others,
    })
}

fn given(slice: &RoomSlice<'_>) -> Vec<(usize, String, bool)> {
    let each = |(recipient, stanzas, is_first): (usize, &[RoomStanza], bool)| {
        let ids = stanzas.iter().filter_map(|of| of.stanza.stanza().id.as_deref());
        (recipient, ids.collect::<Vec<_>>().concat(), is_first)
    };
    slice.recipients().map(each).collect()
}

/// A room of ten thousand takes no more of a turn than its slice, and another room has its turn in between.
#[test]
fn what_is_for_many_is_given_in_slices_and_what_comes_behind_it_waits() {
    let mut walks = RoomWalks::default();
    assert!(matches!(walks.arrive(event("tea", &["a"], 4), &BOUNDS), RoomArrival::Now(_)));
    assert!(matches!(walks.arrive(event("tea", &["b"], 6), &BOUNDS), RoomArrival::Waits));
    assert!(matches!(walks.arrive(event("tea", &["c"], 1), &BOUNDS), RoomArrival::Waits));
    assert!(matches!(walks.arrive(event("pub", &["x"], 4), &BOUNDS), RoomArrival::Now(_)));
    assert!(matches!(walks.arrive(event("pub", &["y"], 5), &BOUNDS), RoomArrival::Waits));
    let order = std::iter::from_fn(|| {
        let part = walks.next(BOUNDS.slice, &BOUNDS)?;
        assert!(part.len() <= BOUNDS.slice);
        let of = part.slice()?.event.stanzas[0].stanza.stanza().id.clone().unwrap();
        Some((String::from(of), part.len()))
    });
    let expected = [("b", 4), ("y", 4), ("b", 2), ("y", 1), ("c", 1)].map(|(of, n)| (of.to_owned(), n));
    assert_eq!(order.collect::<Vec<_>>(), expected);
    assert!(!walks.is_walking());
    assert_eq!(walks.backlog(), PendingFanout::default());
    assert!(matches!(walks.arrive(event("tea", &["d"], 1), &BOUNDS), RoomArrival::Now(_)));
}

/// The result of a query of the archive says that it is complete: it does not come before what it is about.
#[test]
fn an_answer_waits_behind_what_its_room_gives() {
    let mut walks = RoomWalks::default();
    let answer = |room: &str| {
        let from = Jid::new(&format!("{room}@rooms.example.org")).unwrap();
        Stanza::iq(IqType::Result).with_id(room).with_from(from)
    };
    assert!(matches!(walks.arrive_answer(answer("tea"), &BOUNDS), RoomArrival::Now(_)));
    assert!(matches!(walks.arrive(event("tea", &["a"], 6), &BOUNDS), RoomArrival::Waits));
    assert!(matches!(walks.arrive_answer(answer("tea"), &BOUNDS), RoomArrival::Waits));
    assert!(matches!(walks.arrive_answer(answer("pub"), &BOUNDS), RoomArrival::Now(_)));
    assert!(matches!(walks.arrive(event("tea", &["b"], 1), &BOUNDS), RoomArrival::Waits));
    let order = std::iter::from_fn(|| {
        let part = walks.next(BOUNDS.slice, &BOUNDS)?;
        let of = part.slice().map(|slice| slice.event.stanzas[0].stanza.stanza().id.clone().unwrap());
        Some(of.or_else(|| part.into_answer()?.id).map(String::from).unwrap())
    });
    assert_eq!(order.collect::<Vec<_>>(), ["a", "a", "tea", "b"]);
    assert_eq!(walks.backlog(), PendingFanout::default());
}

/// One who enters a large room is given many stanzas, slice by slice, too.
#[test]
fn a_slice_may_begin_and_end_within_what_one_is_given() {
    let all = event("tea", &["a", "b", "c"], 3);
    let part = |deliveries| given(&RoomSlice { event: &all, deliveries });
    let of = |recipient, ids: &str, is_first| (recipient, ids.to_owned(), is_first);
    assert_eq!(part(0..2), [of(0, "ab", true)]);
    assert_eq!(part(2..5), [of(0, "c", false), of(1, "ab", true)]);
    assert_eq!(part(5..9), [of(1, "c", false), of(2, "abc", true)]);
    assert_eq!(given(&RoomSlice::whole(&all)).len(), 3);
}

#[test]
fn a_room_that_is_told_too_much_is_behind_until_half_of_it_is_given() {
    let mut walks = RoomWalks::default();
    let mut arrive = |id| walks.arrive(event("tea", &[id], 6), &BOUNDS);
    assert!(matches!(arrive("a"), RoomArrival::Waits));
    assert!(matches!(arrive("b"), RoomArrival::Waits));
    let RoomArrival::Behind(room) = arrive("c") else { panic!("18 wait, and 12 may") };
    assert_eq!(room.as_str(), "tea@rooms.example.org");
    assert!(matches!(arrive("d"), RoomArrival::Waits), "it is told once");
    let told: Vec<_> = std::iter::from_fn(|| walks.next(6, &BOUNDS)).map(|part| part.caught_up).collect();
    assert_eq!(told, [None, None, Some(room), None]);
}

//! The registry of a front.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::cells::{
    CellChange, CellInUse, ChangeCell, CreateCell, CreateCellRefused, ExpireHeld, Held, HeldById, Hold,
    HoldAnswer, IsHeld, ListCells, MoveDevice, MovingDevices, Place, PlacedIn, Placements, Release,
    RemoveCell, Unplace,
};
use carillon_core::ports::{Ask, Store};
use carillon_wire::jid::BareJid;

pub(super) const NOUN: Noun = Noun {
    writes: |_| {
        let change = CellChange { weight: Some(7), drain: Some(Draining::Running), ..CellChange::default() };
        vec![
            Ask::from(CreateCell { cell: cell("a") }),
            CreateCell { cell: cell("b") }.into(),
            ChangeCell { name: "a".into(), change }.into(),
            Place { device: device("d1"), cell: "a".into() }.into(),
            hold(1, Some("d1"), 100).into(),
            step("d1", 1, begin("b")).into(),
            Unplace { device: device("d1") }.into(),
            hold_for("b", 2, 100).into(),
            Release { cell: "b".into(), seqs: vec![2] }.into(),
            hold_for("b", 3, 100).into(),
            ExpireHeld { now: T.plus(100), max: 10 }.into(),
            RemoveCell { name: "b".into() }.into(),
        ]
    },
    state: |store, _| {
        let placed = ask(store, Placements { devices: vec![device("d1")] });
        format!("{:?} {placed:?} {:?} {:?}", ask(store, ListCells), held(store, "a"), held(store, "b"))
    },
    write_lasting: |store, _| {
        two_cells(store);
        place(store, "d1", "a");
        assert_eq!(ask(store, hold(1, Some("d1"), 100)), HoldAnswer::Held);
        assert!(ask(store, step("d1", 1, begin("b"))).is_ok());
    },
    check_lasting: |store, _| {
        let found = ask(store, MovingDevices { after: None, limit: 10 });
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].cell, &found[0].moving), ("a", &Moving::To("b".into())));
        assert_eq!(counts(store), [("a".into(), 1, 1), ("b".into(), 0, 0)]);
        assert_eq!(
            ask(store, HeldById { id: NotificationId(1) }).map(|held| held.expires),
            Some(T.plus(100))
        );
    },
};

fn cell(name: &str) -> CellRecord {
    CellRecord {
        name: name.into(),
        weight: 100,
        url: format!("https://{name}.example").into(),
        key: CellKey(format!("crl_{name}").into()),
        endpoints: CellEndpoints {
            host: Some(format!("xmpp.{name}.example").into()),
            c2s_port: Some(5222),
            c2s_tls_port: None,
            websocket_url: Some(format!("wss://{name}.example/ws").into()),
        },
        drain: Draining::Off,
        rate: 50,
    }
}

fn two_cells(store: &dyn Store) {
    for name in ["a", "b"] {
        assert_eq!(ask(store, CreateCell { cell: cell(name) }), Ok(()));
    }
}

fn device(local: &str) -> BareJid {
    BareJid::from_parts(Some(local), "example.org").expect("an address")
}

fn place(store: &dyn Store, local: &str, cell: &str) -> Placement {
    ask(store, Place { device: device(local), cell: cell.into() }).expect("a cell")
}

fn step(local: &str, generation: u64, step: MoveStep) -> MoveDevice {
    MoveDevice { device: device(local), generation, step }
}

fn begin(to: &str) -> MoveStep {
    MoveStep::Begin { to: to.into(), enables: false }
}

fn hold(id: u128, local: Option<&str>, ms: u64) -> Hold {
    let device = local.map(device);
    let series = device.as_ref().map_or("topic news", |device| device.as_str()).into();
    let request = HeldRequest {
        seq: 0,
        id: NotificationId(id),
        cell: "a".into(),
        series,
        device,
        path: "/v1/notifications".into(),
        body: vec![b'x'; 100].into(),
        expires: T.plus(ms),
    };
    Hold { request, bytes_max: 10_000 }
}

fn hold_for(cell: &str, id: u128, ms: u64) -> Hold {
    let mut hold = hold(id, None, ms);
    hold.request.cell = cell.into();
    hold
}

/// The ids of what is held for a cell, in the order in which it is given to it.
fn held(store: &dyn Store, cell: &str) -> Vec<u128> {
    let page = Page { entries: 100, bytes: 1 << 20 };
    let found = ask(store, Held { cell: cell.into(), after: 0, page });
    found.entries.iter().map(|held| held.id.0).collect()
}

/// What each cell has: devices, and requests that are held.
fn counts(store: &dyn Store) -> Vec<(String, u64, u64)> {
    let cells = ask(store, ListCells);
    cells.iter().map(|found| (found.cell.name.to_string(), found.devices, found.held)).collect()
}

pub(super) fn are_created_changed_and_removed(store: &dyn Store) {
    assert_eq!(ask(store, ListCells), []);
    two_cells(store);
    assert_eq!(ask(store, CreateCell { cell: cell("a") }), Ok(()), "it is the same");
    let other = CellRecord { weight: 1, ..cell("a") };
    assert_eq!(ask(store, CreateCell { cell: other }), Err(CreateCellRefused::Exists));
    let change =
        CellChange { weight: Some(3), drain: Some(Draining::Paused), rate: Some(9), ..CellChange::default() };
    assert_eq!(ask(store, ChangeCell { name: "b".into(), change: change.clone() }), Ok(()));
    assert_eq!(ask(store, ChangeCell { name: "c".into(), change }), Err(Missing));
    let found: Vec<_> = ask(store, ListCells).into_iter().map(|found| found.cell).collect();
    let changed = CellRecord { weight: 3, drain: Draining::Paused, rate: 9, ..cell("b") };
    assert_eq!(found, [cell("a"), changed]);
    place(store, "d1", "a");
    assert_eq!(ask(store, RemoveCell { name: "a".into() }), Err(CellInUse));
    assert!(ask(store, step("d1", 1, begin("b"))).is_ok());
    assert_eq!(ask(store, RemoveCell { name: "b".into() }), Err(CellInUse), "a device moves to it");
    ask(store, Unplace { device: device("d1") });
    assert_eq!(ask(store, hold_for("b", 1, 100)), HoldAnswer::Held);
    assert_eq!(ask(store, RemoveCell { name: "b".into() }), Err(CellInUse), "something is held for it");
    assert_eq!(ask(store, RemoveCell { name: "a".into() }), Ok(()));
    assert_eq!(ask(store, RemoveCell { name: "a".into() }), Ok(()), "there is none");
    assert_eq!(counts(store), [("b".into(), 0, 1)]);
}

pub(super) fn of_many_at_once_the_first_places(store: &dyn Store) {
    two_cells(store);
    assert_eq!(ask(store, Place { device: device("d1"), cell: "c".into() }), Err(Missing));
    let first = place(store, "d1", "a");
    assert_eq!((&*first.cell, first.generation, &first.moving, first.enables), ("a", 1, &Moving::No, true));
    assert_eq!(place(store, "d1", "b"), first, "it is in a cell already");
    for local in ["d2", "d3", "d4"] {
        place(store, local, "a");
    }
    let asks: Vec<_> =
        ["a", "b"].iter().map(|cell| Place { device: device("d5"), cell: (*cell).into() }).collect();
    let answers: Vec<_> = asks.into_iter().map(|asking| asked(store, asking)).collect();
    let found: Vec<_> = answers.iter().map(|answer| waited(answer).expect("a cell").cell).collect();
    assert_eq!(found[0], found[1]);
    let page = |after: Option<&str>| {
        let asked = PlacedIn { cell: "a".into(), after: after.map(device), limit: 2 };
        ask(store, asked).into_iter().map(|found| found.device.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None), ["d1@example.org", "d2@example.org"]);
    assert_eq!(page(Some("d2")), ["d3@example.org", "d4@example.org"]);
    let placed = ask(store, Placements { devices: vec![device("nobody"), device("d1"), device("d1")] });
    let found: Vec<_> = placed.into_iter().map(|placed| placed.placement).collect();
    assert_eq!(found[0], None);
    assert_eq!(found[1], Some(first));
    ask(store, Unplace { device: device("d1") });
    ask(store, Unplace { device: device("d1") });
    assert_eq!(page(None), ["d2@example.org", "d3@example.org"]);
}

pub(super) fn move_step_by_step_with_what_is_held(store: &dyn Store) {
    two_cells(store);
    place(store, "d1", "a");
    assert_eq!(ask(store, hold(1, Some("d1"), 100)), HoldAnswer::Held);
    assert_eq!(ask(store, hold(2, None, 100)), HoldAnswer::Held);
    let first = step("d1", 1, begin("b"));
    assert_eq!(ask(store, step("d1", 1, begin("c"))), Err(None), "there is no such cell");
    assert_eq!(ask(store, step("d9", 1, begin("b"))), Err(None), "there is no such device");
    let copying = ask(store, first.clone()).expect("it begins");
    assert_eq!((&*copying.cell, copying.generation), ("a", 2));
    assert_eq!(ask(store, first), Ok(copying.clone()), "asked again");
    let stale = Err(Some(Box::new(copying)));
    assert_eq!(ask(store, step("d1", 1, MoveStep::Arrive)), stale);
    assert_eq!(ask(store, step("d1", 2, MoveStep::Finish)), stale);
    assert_eq!(held(store, "a"), [2], "what is for a device that is copied waits");
    assert_eq!(counts(store), [("a".into(), 1, 2), ("b".into(), 0, 0)]);
    assert_eq!(ask(store, hold(3, Some("d1"), 100)), HoldAnswer::Held);
    let arrived = ask(store, step("d1", 2, MoveStep::Arrive)).expect("it arrives");
    assert_eq!((&*arrived.cell, &arrived.moving), ("b", &Moving::From("a".into())));
    assert_eq!((held(store, "a"), held(store, "b")), (vec![2], vec![1, 3]));
    assert_eq!(counts(store), [("a".into(), 0, 1), ("b".into(), 1, 2)]);
    let placed = &ask(store, Placements { devices: vec![device("d1")] })[0];
    assert!(placed.is_held);
    assert_eq!(ask(store, MovingDevices { after: None, limit: 10 }), [arrived]);
    assert_eq!(ask(store, PlacedIn { cell: "b".into(), after: None, limit: 10 }), []);
    let there = ask(store, step("d1", 3, MoveStep::Finish)).expect("it ends");
    assert!(!there.enables);
    assert_eq!(ask(store, MovingDevices { after: None, limit: 10 }), []);
    assert_eq!(ask(store, PlacedIn { cell: "b".into(), after: None, limit: 10 }), [there]);
    ask(store, Unplace { device: device("d1") });
    assert_eq!((held(store, "b"), counts(store)), (vec![], vec![("a".into(), 0, 1), ("b".into(), 0, 0)]));
}

pub(super) fn hold_requests_in_order_once_and_bounded(store: &dyn Store) {
    two_cells(store);
    place(store, "d1", "b");
    assert_eq!(ask(store, hold(1, Some("nobody"), 100)), HoldAnswer::Missing);
    assert_eq!(ask(store, hold_for("c", 1, 100)), HoldAnswer::Missing);
    // For a device it is held where the device is, whatever the request names.
    for id in [5, 3, 5] {
        assert_eq!(ask(store, hold(id, Some("d1"), 100)), HoldAnswer::Held);
    }
    assert_eq!(held(store, "b"), [5, 3]);
    assert_eq!(ask(store, hold_for("a", 5, 100)), HoldAnswer::Held, "the same for another cell");
    let is_held = |cell: &str| ask(store, IsHeld { cell: cell.into(), series: "topic news".into() });
    assert!(is_held("a") && !is_held("b"));
    let bytes = hold(1, None, 0).request.bytes();
    let report = ask(store, ListCells);
    assert_eq!(
        (report[0].held_bytes, report[1].held, report[1].held_bytes),
        (bytes, 2, 2 * hold(1, Some("d1"), 0).request.bytes(),)
    );
    let full = Hold { bytes_max: 2 * bytes - 1, ..hold_for("a", 6, 100) };
    assert_eq!(ask(store, full.clone()), HoldAnswer::Full);
    assert_eq!(ask(store, Hold { bytes_max: 2 * bytes, ..full }), HoldAnswer::Held);
    let page = Page { entries: 1, bytes: 1 << 20 };
    let first = ask(store, Held { cell: "b".into(), after: 0, page });
    assert!(first.more && first.entries.len() == 1);
    let request = hold(5, Some("d1"), 100).request;
    let seq = first.entries[0].seq;
    assert_eq!(first.entries[0], HeldRequest { seq, cell: "b".into(), ..request });
    let second = ask(store, Held { cell: "b".into(), after: seq, page });
    assert!(!second.more && second.entries[0].id == NotificationId(3));
    ask(store, Release { cell: "a".into(), seqs: vec![seq] });
    assert_eq!(held(store, "b"), [5, 3], "it is another cell's");
    ask(store, Release { cell: "b".into(), seqs: vec![seq, seq] });
    assert_eq!((held(store, "b"), counts(store)[1].2), (vec![3], 1));
}

pub(super) fn forget_what_expired(store: &dyn Store) {
    two_cells(store);
    for (id, ms) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
        assert_eq!(ask(store, hold_for("a", id, ms)), HoldAnswer::Held);
    }
    ask(store, ExpireHeld { now: T.plus(9), max: 10 });
    assert_eq!(held(store, "a"), [1, 2, 3, 4]);
    ask(store, ExpireHeld { now: T.plus(30), max: 2 });
    assert_eq!(held(store, "a"), [1, 4], "those that expired first");
    ask(store, ExpireHeld { now: T.plus(30), max: 2 });
    assert_eq!((held(store, "a"), counts(store)[0].2), (vec![4], 1));
    assert_eq!(ask(store, ListCells)[0].held_bytes, hold(1, None, 0).request.bytes());
}

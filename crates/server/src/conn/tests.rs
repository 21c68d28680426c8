use super::*;
use crate::listen::{Admission, Bounds};
use carillon_core::model::Mono;
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// What an idle connection costs in this crate, besides its keys. Eight more bytes are 15 MiB on a node with two million
/// connections.
#[test]
fn a_connection_is_small() {
    assert!(size_of::<Conn>() <= 104, "{} bytes", size_of::<Conn>());
    // 224 bytes of keys and sequence numbers, and what the record layer remembers.
    assert!(size_of::<crate::tls::Keys>() <= 232, "{} bytes", size_of::<crate::tls::Keys>());
}

fn conn(admission: &Arc<Admission>) -> Conn {
    let (socket, _) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Conn::new(socket, address, Transport::Plain, Protocol::Stream, admission.admit(address, Mono(0)).unwrap())
}

#[test]
fn a_slot_used_again_has_another_name() {
    let (mut slab, admission) = (Slab::default(), Arc::new(Admission::new(Bounds::NONE)));
    let first = slab.insert(conn(&admission));
    assert!(slab.remove(first).is_some());
    let second = slab.insert(conn(&admission));
    assert_eq!(first.slot, second.slot);
    assert!(slab.get_mut(first).is_none() && slab.remove(first).is_none());
    assert!(slab.get_mut(second).is_some());
    assert_eq!(slab.ids(), [second]);
}

#[test]
fn pages_come_and_go() {
    let (mut slab, admission) = (Slab::default(), Arc::new(Admission::new(Bounds::NONE)));
    // 3 pages of 64 in tests.
    let ids: Vec<_> = (0..150).map(|_| slab.insert(conn(&admission))).collect();
    assert_eq!((slab.ids(), slab.pages()), (ids.clone(), 3));
    assert_eq!(ids[149].slot, 149);
    // The middle page empties and is given back; its slots are used again first.
    ids[64..128].iter().for_each(|id| assert!(slab.remove(*id).is_some()));
    assert_eq!((slab.ids().len(), slab.pages()), (86, 2));
    assert_eq!(slab.insert(conn(&admission)).slot, 150);
    ids[..64].iter().chain(&ids[128..]).for_each(|id| assert!(slab.remove(*id).is_some()));
    assert_eq!((slab.ids().len(), slab.pages()), (1, 1));
    let next = slab.insert(conn(&admission));
    assert_eq!(next.slot / 64, 2, "room in a page that is there comes before a new page");
    slab.ids().into_iter().for_each(|id| drop(slab.remove(id)));
    assert_eq!((slab.ids().len(), slab.pages(), admission.open()), (0, 1, 0));
}

#[test]
fn a_connection_keeps_the_name_that_it_had_in_another_process() {
    let (mut old, mut new, admission) =
        (Slab::default(), Slab::default(), Arc::new(Admission::new(Bounds::NONE)));
    let ids: Vec<_> = (0..150).map(|_| old.insert(conn(&admission))).collect();
    new.go_on_from(old.generation());
    let kept = [ids[149], ids[0], ids[3], ids[64]];
    for id in kept {
        assert!(new.insert_at(id, conn(&admission)).is_ok());
        assert!(new.insert_at(id, conn(&admission)).is_err(), "its place is taken");
    }
    assert!(kept.iter().all(|id| new.get_mut(*id).is_some()) && new.get_mut(ids[1]).is_none());
    let others: Vec<_> = (0..150).map(|_| new.insert(conn(&admission))).collect();
    assert!(others.iter().all(|other| !ids.contains(other)), "no name is given again");
    assert!(others.iter().chain(&kept).all(|id| new.remove(*id).is_some()));
    assert_eq!((new.ids().len(), new.pages()), (0, 1));
    assert!(
        new.insert_at(carillon_core::model::ConnId { slot: u32::MAX, generation: 1 }, conn(&admission))
            .is_err()
    );
}

use super::*;
use crate::conn::ReadOutcome;
use crate::conn::deadlines::Deadline;
use crate::testing::Rig;
use carillon_core::connection::Resumed;
use carillon_core::model::Mono;
use socket2::Type;
use std::io::{Read, Write};

fn element(n: usize) -> Vec<u8> {
    format!("<e n='{n:04}'>{}</e>", "x".repeat(500)).into_bytes()
}

fn send(effects: &mut Effects, conn: ConnId, n: usize) {
    effects.send(conn, |out| out.extend_from_slice(&element(n)));
}

/// Reads to the end at the peer, while the queue is written whenever the socket can be written.
fn read_all(rig: &mut Rig, peer: socket2::Socket) -> Vec<u8> {
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        (&peer).read_to_end(&mut all).unwrap();
        all
    });
    let mut events = mio::Events::with_capacity(8);
    while !reader.is_finished() {
        rig.poll.poll(&mut events, Some(std::time::Duration::from_millis(20))).unwrap();
        for event in &events {
            if let Some(id) = crate::shard_io::conn_of(event.token()) {
                rig.io.writable(id);
            }
        }
    }
    reader.join().unwrap()
}

#[test]
fn what_the_socket_does_not_take_follows_in_order() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect(Type::STREAM, Protocol::Stream);
    for n in 0..200 {
        rig.carry_out(|effects| send(effects, conn, n));
    }
    assert!(rig.io.conns.get_mut(conn).unwrap().has_queue(), "the socket took more than it should");
    rig.carry_out(|effects| effects.push(Effect::Close { conn }));
    assert!(matches!(rig.io.upcalls[..], [Upcall::Closed(of, _)] if of == conn));
    let expected: Vec<u8> = (0..200).flat_map(element).collect();
    assert!(read_all(&mut rig, peer) == expected);
}

#[test]
fn sends_that_adjoin_share_a_system_call() {
    let mut rig = Rig::new(1 << 20);
    let (one, peer_of_one) = rig.connect(Type::SEQPACKET, Protocol::Stream);
    let (other, peer_of_other) = rig.connect(Type::SEQPACKET, Protocol::Stream);
    rig.carry_out(|effects| {
        [(one, 0), (one, 1), (other, 2), (one, 3)].into_iter().for_each(|(conn, n)| send(effects, conn, n));
    });
    // On this kind of socket one read returns what one send sent.
    let read = |mut peer: &socket2::Socket| {
        let mut packet = [0; 4096];
        let len = peer.read(&mut packet).unwrap();
        packet[..len].to_vec()
    };
    assert!(read(&peer_of_one) == [element(0), element(1)].concat());
    assert!(read(&peer_of_one) == element(3));
    assert!(read(&peer_of_other) == element(2));
}

#[test]
fn a_fan_out_is_one_system_call_where_there_is_a_ring() {
    for mut rig in Rig::both(1 << 20) {
        let conns: Vec<_> = (0..100).map(|_| rig.connect(Type::STREAM, Protocol::Stream)).collect();
        rig.carry_out(|effects| {
            conns.iter().enumerate().for_each(|(n, (conn, _))| send(effects, *conn, n));
        });
        let calls = if rig.io.sends.has_ring() { 1 } else { 100 };
        assert_eq!((rig.io.counters.sends, rig.io.counters.send_calls), (100, calls));
        for (n, (_, peer)) in conns.iter().enumerate() {
            let mut got = vec![0; element(n).len()];
            (&*peer).read_exact(&mut got).unwrap();
            assert!(got == element(n));
        }
    }
}

#[test]
fn a_batch_goes_on_past_those_who_are_gone_and_those_who_do_not_read() {
    for mut rig in Rig::both(1 << 20) {
        let (gone, its_peer) = rig.connect(Type::STREAM, Protocol::Stream);
        let (full, slow) = rig.connect(Type::STREAM, Protocol::Stream);
        let (well, peer) = rig.connect(Type::STREAM, Protocol::Stream);
        drop(its_peer);
        rig.carry_out(|effects| {
            for n in 0..100 {
                [gone, full].into_iter().for_each(|conn| send(effects, conn, n));
            }
            send(effects, well, 0);
        });
        assert!(matches!(rig.io.upcalls[..], [Upcall::Closed(of, _)] if of == gone));
        let mut got = vec![0; element(0).len()];
        (&peer).read_exact(&mut got).unwrap();
        assert!(got == element(0));
        rig.carry_out(|effects| effects.push(Effect::Close { conn: full }));
        assert!(read_all(&mut rig, slow) == (0..100).flat_map(element).collect::<Vec<_>>());
    }
}

#[test]
fn a_long_run_is_cut_at_the_size_of_a_record() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect(Type::SEQPACKET, Protocol::Stream);
    rig.io.conns.get_mut(conn).unwrap().socket.set_send_buffer_size(1 << 20).unwrap();
    rig.carry_out(|effects| (0..100).for_each(|n| send(effects, conn, n)));
    let mut packet = vec![0; 1 << 20];
    let len = (&peer).read(&mut packet).unwrap();
    assert_eq!((len / element(0).len(), len % element(0).len()), (RUN_BYTES_MAX / element(0).len(), 0));
}

#[test]
fn on_websocket_each_element_is_a_message() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect(Type::SEQPACKET, Protocol::WebSocket(None));
    rig.carry_out(|effects| {
        effects.send(conn, |out| out.extend_from_slice(b"<a/>"));
        effects.send(conn, |out| out.extend_from_slice(b"<b/>"));
    });
    let mut packet = [0; 64];
    let len = (&peer).read(&mut packet).unwrap();
    assert_eq!(&packet[..len], b"\x81\x04<a/>\x81\x04<b/>");
}

#[test]
fn overflow_is_told_once_and_leaves_no_gap_before_the_last_words() {
    let mut rig = Rig::new(16 * 1024);
    let (conn, peer) = rig.connect(Type::STREAM, Protocol::Stream);
    for n in 0..200 {
        rig.carry_out(|effects| send(effects, conn, n));
    }
    assert_eq!(rig.io.upcalls, [Upcall::Overflowed(conn, QueueBound::Own)]);
    assert_eq!(rig.io.counters.overflows, 1);
    rig.io.upcalls.clear();
    rig.io.conns.get_mut(conn).unwrap().send_queue.overflow_reported();
    rig.carry_out(|effects| {
        effects.send(conn, |out| out.extend_from_slice(b"<error/>"));
        effects.push(Effect::Close { conn });
    });
    assert!(matches!(rig.io.upcalls[..], [Upcall::Closed(of, _)] if of == conn));
    let got = read_all(&mut rig, peer);
    let whole = got.len() / element(0).len();
    let expected: Vec<u8> = (0..whole).flat_map(element).chain(*b"<error/>").collect();
    assert!((20..200).contains(&whole) && got == expected, "{whole} elements");
}

#[test]
fn a_flush_is_told_once_when_what_came_before_has_left() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect(Type::STREAM, Protocol::Stream);
    rig.carry_out(|effects| effects.push(Effect::WatchFlush { conn }));
    assert_eq!(rig.io.upcalls, [Upcall::Flushed(conn)], "nothing was queued");
    rig.io.upcalls.clear();
    rig.carry_out(|effects| (0..100).for_each(|n| send(effects, conn, n)));
    rig.carry_out(|effects| effects.push(Effect::WatchFlush { conn }));
    assert_eq!(rig.io.upcalls, []);
    rig.carry_out(|effects| (100..200).for_each(|n| send(effects, conn, n)));
    let mut got = vec![0; 100 * element(0).len()];
    let mut read = 0;
    while rig.io.upcalls.is_empty() {
        assert!(read < got.len(), "all was read that came before");
        read += (&peer).read(&mut got[read..]).unwrap();
        rig.io.writable(conn);
    }
    assert_eq!(rig.io.upcalls, [Upcall::Flushed(conn)]);
    assert!(rig.io.conns.get_mut(conn).unwrap().has_queue(), "the others are still queued");
}

#[test]
fn a_peer_that_never_reads_is_gone_at_the_deadline() {
    let mut rig = Rig::new(1 << 20);
    let (conn, _peer) = rig.connect(Type::STREAM, Protocol::Stream);
    rig.carry_out(|effects| {
        (0..200).for_each(|n| send(effects, conn, n));
        effects.push(Effect::Close { conn });
    });
    let patience = rig.io.settings.timeouts.close_ms;
    rig.io.mono = Mono(patience - 1);
    rig.io.expire();
    assert!(rig.io.conns.get_mut(conn).is_some());
    rig.io.mono = Mono(patience);
    rig.io.expire();
    assert!(rig.io.conns.get_mut(conn).is_none());
    assert_eq!((rig.admission.open(), rig.io.upcalls.len()), (0, 1));
}

#[test]
fn the_deadline_of_an_opening_does_not_concern_who_is_in() {
    let mut rig = Rig::new(1 << 20);
    let (conn, _peer) = rig.connect(Type::STREAM, Protocol::Stream);
    rig.io.deadlines.set(Mono(1), Deadline::Opening, conn);
    rig.io.mono = Mono(2);
    rig.io.expire();
    assert!(rig.io.conns.get_mut(conn).is_some());
}

#[test]
fn effects_on_a_connection_that_is_gone_do_nothing() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect(Type::STREAM, Protocol::Stream);
    drop(peer);
    rig.carry_out(|effects| {
        send(effects, conn, 0);
        send(effects, conn, 1);
        effects.push(Effect::Pause { conn });
        effects.push(Effect::Resume { conn });
        effects.push(Effect::Secure { conn });
        effects.push(Effect::WatchFlush { conn });
        effects.push(Effect::Close { conn });
    });
    assert!(matches!(rig.io.upcalls[..], [Upcall::Closed(of, _)] if of == conn));
}

#[test]
fn a_connection_that_moves_under_load_loses_no_byte() {
    let (mut here, mut there) = (Rig::new(1 << 20), Rig::new(1 << 20));
    let (mut id, peer) = here.connect(Type::STREAM, Protocol::Stream);
    let sent: Vec<u8> = (0..2000).flat_map(element).collect();
    let writer = std::thread::spawn({
        let sent = sent.clone();
        let writing = peer.try_clone().unwrap();
        move || {
            (&writing).write_all(&sent).unwrap();
            writing.shutdown(std::net::Shutdown::Write).unwrap();
        }
    });
    let mut got = Vec::new();
    let mut events = mio::Events::with_capacity(8);
    'reading: loop {
        here.poll.poll(&mut events, Some(std::time::Duration::from_secs(10))).unwrap();
        assert!(!events.is_empty(), "the new registration lost an edge");
        // Sometimes everything is read, sometimes a part: then the rest must make an edge at the other side.
        let reads = if got.len() % 3 == 0 { 1 } else { usize::MAX };
        for _ in 0..reads {
            let ShardIo { conns, scratch, .. } = &mut here.io;
            match conns.get_mut(id).unwrap().receive(&mut scratch.raw[..7000]) {
                ReadOutcome::Bytes(len) => got.extend_from_slice(&scratch.raw[..len]),
                ReadOutcome::Nothing => break,
                ReadOutcome::End => break 'reading,
                ReadOutcome::Broken => panic!("the peer is there"),
            }
        }
        // What is queued moves, too.
        here.carry_out(|effects| (0..10).for_each(|n| send(effects, id, n)));
        let conn = here.io.detach(id).unwrap();
        std::mem::swap(&mut here, &mut there);
        id = here.io.attach(conn).unwrap();
    }
    writer.join().unwrap();
    assert!(got == sent);
    here.carry_out(|effects| effects.push(Effect::Close { conn: id }));
    let back = read_all(&mut here, peer);
    assert_eq!(back.len() % (10 * element(0).len()), 0);
    let ten: Vec<u8> = (0..10).flat_map(element).collect();
    assert!(back.chunks(ten.len()).all(|chunk| chunk == ten));
}

#[test]
fn decrypted_bytes_in_hand_move_along() {
    let mut rig = Rig::new(1 << 20);
    let (id, _peer) = rig.connect(Type::STREAM, Protocol::WebSocket(None));
    rig.io.plaintext.replace(id, b"frames".to_vec());
    let mut conn = rig.io.detach(id).unwrap();
    conn.keep_plain(rig.io.plaintext.unread_of(id));
    assert!(matches!(conn.take_kept(), Some(Resumed::Bytes(plain)) if plain == b"frames"));
    let other = ConnId { slot: id.slot, generation: id.generation + 1 };
    assert!(rig.io.plaintext.unread_of(other).is_empty());
}

#[test]
fn what_has_not_arrived_is_counted_in_the_kernel_and_in_the_queue() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect_tcp();
    let count = |rig: &mut Rig| {
        rig.carry_out(|effects| effects.push(Effect::CountUnacked { conn, sent: 7 }));
        match rig.io.upcalls.pop() {
            Some(Upcall::Unacked(of, bytes, 7)) if of == conn => bytes,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(count(&mut rig), 0, "nothing was sent");
    // What the peer's side takes without being read, and more than that.
    let mut sent = 0;
    while !rig.io.conns.get_mut(conn).unwrap().has_queue() {
        rig.carry_out(|effects| send(effects, conn, 0));
        sent += element(0).len() as u64;
    }
    let arrived = peer_has(&peer);
    assert!(arrived > 0 && count(&mut rig) >= sent - arrived, "{arrived} of {sent}");
    let mut got = vec![0; sent as usize];
    let mut read = 0;
    while read < got.len() {
        read += (&peer).read(&mut got[read..]).unwrap();
        rig.io.writable(conn);
    }
    // Acknowledgements come soon after it was read.
    let began = std::time::Instant::now();
    while count(&mut rig) > 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "what was read is acknowledged");
        std::thread::yield_now();
    }
}

#[test]
fn what_was_reset_has_not_arrived() {
    let mut rig = Rig::new(1 << 20);
    let (conn, peer) = rig.connect_tcp();
    while !rig.io.conns.get_mut(conn).unwrap().has_queue() {
        rig.carry_out(|effects| send(effects, conn, 0));
    }
    peer.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(peer);
    rig.carry_out(|effects| effects.push(Effect::CountUnacked { conn, sent: 7 }));
    assert!(matches!(rig.io.upcalls[..], [Upcall::Unacked(of, bytes, 7)] if of == conn && bytes > 0));
}

#[test]
fn after_an_overflow_nothing_is_said_to_have_arrived() {
    let mut rig = Rig::new(16 * 1024);
    let (conn, _peer) = rig.connect(Type::STREAM, Protocol::Stream);
    for n in 0..200 {
        rig.carry_out(|effects| send(effects, conn, n));
    }
    rig.io.upcalls.clear();
    rig.carry_out(|effects| effects.push(Effect::CountUnacked { conn, sent: 7 }));
    assert_eq!(rig.io.upcalls, [Upcall::Unacked(conn, u64::MAX, 7)]);
}

/// How many bytes a socket has that were not read.
fn peer_has(peer: &socket2::Socket) -> u64 {
    rustix::io::ioctl_fionread(peer).unwrap()
}

#[test]
fn a_flush_is_told_when_a_long_answer_follows_what_was_held_back() {
    let mut rig = Rig::new(1 << 20);
    let (conn, _peer) = rig.connect(Type::STREAM, Protocol::Stream);
    rig.io.conns.get_mut(conn).unwrap().send_queue.hold(b"ticket");
    rig.carry_out(|effects| {
        send(effects, conn, 0);
        effects.push(Effect::WatchFlush { conn });
        // Too much to be held back, too.
        (1..40).for_each(|n| send(effects, conn, n));
    });
    assert_eq!(rig.io.upcalls, [Upcall::Flushed(conn)]);
}

#[test]
fn last_words_are_written_although_no_edge_comes() {
    let mut rig = Rig::new(16 * 1024);
    let (conn, peer) = rig.connect(Type::STREAM, Protocol::Stream);
    for n in 0..200 {
        rig.carry_out(|effects| send(effects, conn, n));
    }
    assert_eq!(rig.io.upcalls, [Upcall::Overflowed(conn, QueueBound::Own)]);
    // The peer reads everything before the core hears that it does not.
    let mut bytes = vec![0; 1 << 20];
    while rig.io.conns.get_mut(conn).unwrap().has_queue() {
        assert!((&peer).read(&mut bytes).unwrap() > 0);
        rig.io.writable(conn);
    }
    peer.set_nonblocking(true).unwrap();
    while (&peer).read(&mut bytes).is_ok_and(|read| read > 0) {}
    rig.io.conns.get_mut(conn).unwrap().send_queue.overflow_reported();
    rig.carry_out(|effects| effects.send(conn, |out| out.extend_from_slice(b"<error/>")));
    assert!(
        !rig.io.conns.get_mut(conn).unwrap().has_queue(),
        "the socket has room, and will not say so again"
    );
}

/// Whoever does not read takes no more than the bound together, whether or not it reads what it is told.
#[test]
fn all_queues_together_are_bounded_and_the_largest_end_first() {
    for mut rig in Rig::both(64 * 1024) {
        rig.io.out_queues.all_bytes = 1 << 20;
        let stuck: Vec<_> = (0..40).map(|_| rig.connect(Type::STREAM, Protocol::Stream)).collect();
        let (small, slow) = rig.connect(Type::STREAM, Protocol::Stream);
        let (well, peer) = rig.connect(Type::STREAM, Protocol::Stream);
        (0..20).for_each(|n| rig.carry_out(|effects| send(effects, small, n)));
        let (mut most, mut told) = (0, 0);
        for n in 0..100 {
            rig.carry_out(|effects| {
                stuck.iter().for_each(|(conn, _)| send(effects, *conn, n));
                send(effects, well, n);
            });
            let mut got = vec![0; element(n).len()];
            (&peer).read_exact(&mut got).unwrap();
            assert!(got == element(n), "others are served");
            most = most.max(rig.io.counters.out_queue_bytes);
            // As the core does it.
            for upcall in std::mem::take(&mut rig.io.upcalls) {
                if let Upcall::Overflowed(conn, bound) = upcall {
                    assert!(conn != small && conn != well && bound == QueueBound::Common);
                    told += 1;
                    rig.carry_out(|effects| {
                        effects.send(conn, |out| out.extend_from_slice(b"<error/>"));
                        effects.push(Effect::Close { conn });
                    });
                }
            }
        }
        let bound = rig.io.out_queues.all_bytes as u64;
        assert!((bound / 4 * 3..=bound).contains(&most), "{most} bytes at most");
        assert_eq!(told, rig.io.counters.common_overflows);
        assert!((20..=40).contains(&told), "{told} were told");
        rig.carry_out(|effects| effects.push(Effect::Close { conn: small }));
        assert!(read_all(&mut rig, slow) == (0..20).flat_map(element).collect::<Vec<_>>());
        for (conn, _) in stuck {
            rig.io.drop_conn(conn);
        }
        assert_eq!(rig.io.counters.out_queue_bytes, 0);
    }
}

#[test]
fn who_reads_what_it_is_told_has_it_whole() {
    let mut rig = Rig::new(1 << 20);
    rig.io.out_queues.all_bytes = 512 * 1024;
    let conns: Vec<_> = (0..20).map(|_| rig.connect(Type::STREAM, Protocol::Stream)).collect();
    let (mut sent, mut all) = (vec![0; conns.len()], (0..conns.len()).cycle());
    while rig.io.upcalls.is_empty() {
        let at = all.next().unwrap();
        rig.carry_out(|effects| send(effects, conns[at].0, sent[at]));
        sent[at] += 1;
    }
    let [Upcall::Overflowed(conn, QueueBound::Common)] = rig.io.upcalls[..] else {
        panic!("{:?}", rig.io.upcalls)
    };
    let sent = sent[conns.iter().position(|(id, _)| *id == conn).unwrap()];
    let (_, peer) = conns.into_iter().find(|(id, _)| *id == conn).unwrap();
    rig.carry_out(|effects| {
        effects.send(conn, |out| out.extend_from_slice(b"<error/>"));
        effects.push(Effect::Close { conn });
    });
    let expected: Vec<u8> = (0..sent).flat_map(element).chain(*b"<error/>").collect();
    assert!(read_all(&mut rig, peer) == expected);
}

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_key_opens_after_one_rotation_and_not_after_two() {
    let ticketer = Ticketer::new().unwrap();
    let start = Instant::now();
    let first = ticketer.seal(b"first", start).unwrap();
    assert_eq!(ticketer.seal(b"", start + ROTATION - SECOND).unwrap()[..NAME_BYTES], first[..NAME_BYTES]);
    let second = ticketer.seal(b"second", start + ROTATION + SECOND).unwrap();
    assert_ne!(second[..NAME_BYTES], first[..NAME_BYTES]);
    let later = start + ROTATION + 2 * SECOND;
    assert_eq!(ticketer.open(&first, later).unwrap(), b"first");
    assert_eq!(ticketer.open(&second, later).unwrap(), b"second");
    let last = start + 2 * ROTATION + 2 * SECOND;
    ticketer.seal(b"third", last).unwrap();
    assert_eq!(ticketer.open(&first, last), None);
    assert_eq!(ticketer.open(&second, last).unwrap(), b"second");
}

#[test]
fn a_key_opens_for_its_lifetime_even_if_nothing_was_sealed_since() {
    let ticketer = Ticketer::new().unwrap();
    let start = Instant::now();
    let ticket = ticketer.seal(b"session", start).unwrap();
    assert_eq!(ticketer.open(&ticket, start + LIFETIME - SECOND).unwrap(), b"session");
    assert_eq!(ticketer.open(&ticket, start + LIFETIME + SECOND), None);
}

#[test]
fn only_a_whole_ticket_of_its_own_opens() {
    let (ticketer, foreign) = (Ticketer::new().unwrap(), Ticketer::new().unwrap());
    let now = Instant::now();
    let ticket = ticketer.seal(b"session", now).unwrap();
    assert_eq!(ticketer.open(&ticket, now).unwrap(), b"session");
    assert_eq!(foreign.open(&ticket, now), None);
    for at in 0..ticket.len() {
        assert_eq!(ticketer.open(&ticket[..at], now), None, "cut to {at} bytes");
        let mut changed = ticket.clone();
        changed[at] ^= 1;
        assert_eq!(ticketer.open(&changed, now), None, "byte {at}");
    }
    let longer = [&ticket[..], &[0]].concat();
    assert_eq!(ticketer.open(&longer, now), None);
}

#[test]
fn the_size_of_a_ticket_is_bounded() {
    let ticketer = Ticketer::new().unwrap();
    let now = Instant::now();
    let largest = vec![7; TICKET_BYTES_MAX - OVERHEAD_BYTES];
    let ticket = ticketer.seal(&largest, now).unwrap();
    assert_eq!(ticket.len(), TICKET_BYTES_MAX);
    assert_eq!(ticketer.open(&ticket, now).unwrap(), largest);
    assert_eq!(ticketer.seal(&[&largest[..], &[7]].concat(), now), None);
}

#[test]
fn both_keys_and_their_ages_go_along() {
    let ticketer = Ticketer::new().unwrap();
    let start = Instant::now();
    let old = ticketer.seal(b"old", start).unwrap();
    let later = start + ROTATION + SECOND;
    let new = ticketer.seal(b"new", later).unwrap();
    // Another process has another clock: its "now" is another instant.
    let there = start + 100 * LIFETIME;
    let read = Ticketer::from_bytes(&ticketer.to_bytes(later + SECOND), there).unwrap();
    assert_eq!(read.open(&old, there).unwrap(), b"old");
    assert_eq!(read.open(&new, there).unwrap(), b"new");
    // It seals with the same key, until the same time.
    assert_eq!(read.seal(b"", there).unwrap()[..NAME_BYTES], new[..NAME_BYTES]);
    assert_ne!(read.seal(b"", there + ROTATION).unwrap()[..NAME_BYTES], new[..NAME_BYTES]);
    assert_eq!(read.open(&old, there + ROTATION), None);
    assert_eq!(read.open(&new, there + ROTATION).unwrap(), b"new");
}

#[test]
fn what_is_no_keys_is_refused() {
    let now = Instant::now();
    let refused = |bytes: &[u8]| Ticketer::from_bytes(bytes, now).unwrap_err();
    let bytes = Ticketer::new().unwrap().to_bytes(now);
    assert_eq!(bytes.len(), 1 + KEY_BYTES);
    for at in 0..bytes.len() {
        assert_eq!(refused(&bytes[..at]), MalformedTicketKeys::Length(at));
    }
    let three = [&bytes[..], &bytes[1..], &bytes[1..]].concat();
    assert_eq!(refused(&three), MalformedTicketKeys::Length(three.len()));
    assert_eq!(refused(&[&[2], &bytes[1..]].concat()), MalformedTicketKeys::Version(2));
}

#[test]
fn a_key_of_any_age_is_read() {
    let (ticketer, now) = (Ticketer::new().unwrap(), Instant::now());
    let ticket = ticketer.seal(b"session", now).unwrap();
    let mut bytes = ticketer.to_bytes(now);
    bytes[1 + NAME_BYTES + SECRET_BYTES..].fill(0xff);
    let read = Ticketer::from_bytes(&bytes, now).unwrap();
    assert_eq!(read.open(&ticket, now), None);
    assert_ne!(read.seal(b"", now).unwrap()[..NAME_BYTES], ticket[..NAME_BYTES]);
}

#[test]
fn threads_that_rotate_at_once_agree_on_one_key() {
    let ticketer = Ticketer::new().unwrap();
    let later = Instant::now() + ROTATION + SECOND;
    let names: std::collections::BTreeSet<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ticketer.seal(b"", later).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()[..NAME_BYTES].to_vec()).collect()
    });
    assert_eq!(names.len(), 1);
}

#[test]
fn it_prints_no_keys() {
    assert_eq!(format!("{:?}", Ticketer::new().unwrap()), "Ticketer { .. }");
}

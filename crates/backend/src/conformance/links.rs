//! Short links.

use super::ground::*;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::links::{
    ChangeLink, ChangeLinkAnswer, CountClicks, CreateLink, CreateLinkAnswer, LinkBounds, LinkClicks,
    LinkSecret, Links, LinksAnswer, OpenNotifications, PutLinkFile, ReadLinkFile,
};
use carillon_core::ports::{Ask, Store, store};

const BOUNDS: LinkBounds = LinkBounds { links: 9, bytes: 1000 };
const URL: &str = "https://example.com/a";

fn with_secret(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    ask(store, secret(domain, 1)).expect("the domain is there");
    domain
}

fn secret(domain: DomainId, seed: u8) -> LinkSecret {
    LinkSecret { domain, fresh: [seed; 32] }
}

fn create(domain: DomainId, codes: &[&str], url: &str) -> CreateLink {
    CreateLink {
        domain,
        codes: codes.iter().map(|code| (*code).into()).collect(),
        url: url.into(),
        may_change: false,
        expires: None,
        key: None,
        now: T,
        bounds: BOUNDS,
    }
}

fn made(store: &dyn Store, create: CreateLink) -> Link {
    answer!(ask(store, create), CreateLinkAnswer::Created(link) | CreateLinkAnswer::Exists(link) => *link)
}

fn unchanged(domain: DomainId, code: &str) -> ChangeLink {
    ChangeLink { domain, code: code.into(), url: None, expires: None, removed: None, bounds: BOUNDS }
}

fn changed(store: &dyn Store, change: ChangeLink) -> Link {
    answer!(ask(store, change), ChangeLinkAnswer::Link(link) => *link)
}

fn found(store: &dyn Store, domain: DomainId, code: &str) -> Option<Link> {
    ask(store, store::links::Link { domain, code: code.into() }).map(|link| *link)
}

fn all(domain: DomainId) -> Links {
    Links { domain, search: "".into(), before: LinkId(u64::MAX >> 1), limit: 99 }
}

fn click(domain: DomainId, n: u64, at: UnixMs) -> Click {
    Click { id: id(n), domain, opened: Opened { at, agent: AgentClass::Mobile } }
}

pub(super) fn lead_where_they_were_made_to(store: &dyn Store) {
    let domain = with_secret(store);
    let asked = CreateLink {
        may_change: true,
        expires: Some(T.plus(5)),
        key: Some(KeyId(3)),
        ..create(domain, &["abc"], URL)
    };
    let link = made(store, asked);
    let expected = Link {
        id: link.id,
        domain,
        code: "abc".into(),
        url: URL.into(),
        may_change: true,
        created: T,
        expires: Some(T.plus(5)),
        removed: None,
        key: Some(KeyId(3)),
        clicks: 0,
        last_click: None,
    };
    assert_eq!(link, expected);
    assert_eq!(found(store, domain, "abc"), Some(expected));
    assert_eq!(found(store, domain, "ABC"), None, "codes differ by case");
    assert_eq!(found(store, domain_named(store, "other.example"), "abc"), None);
}

pub(super) fn of_one_url_are_one(store: &dyn Store) {
    let domain = with_secret(store);
    let created = ask(store, create(domain, &["abc", "def"], URL));
    let first = answer!(created, CreateLinkAnswer::Created(link) => *link);
    for later in [0, 9] {
        let again =
            CreateLink { now: T.plus(later), may_change: true, ..create(domain, &["abc", "def"], URL) };
        let exists = CreateLinkAnswer::Exists(Box::new(first.clone()));
        assert_eq!(ask(store, again), exists, "it is left as it is");
    }
    assert_eq!(ask(store, all(domain)).links, [first]);
}

pub(super) fn give_way_to_others(store: &dyn Store) {
    let domain = with_secret(store);
    made(store, create(domain, &["abc"], "https://example.com/b"));
    let second = made(store, create(domain, &["abc", "def"], URL));
    assert_eq!(&*second.code, "def");
    assert_eq!(made(store, create(domain, &["abc", "def"], URL)), second, "and it is found again");
    let taken = create(domain, &["abc", "def"], "https://example.com/c");
    assert_eq!(ask(store, taken), CreateLinkAnswer::Taken);
}

pub(super) fn are_bounded_in_number_and_bytes(store: &dyn Store) {
    let domain = with_secret(store);
    let bounds = LinkBounds { links: 2, bytes: 60 };
    let create = |code: &str, url: &str| CreateLink { bounds, ..create(domain, &[code], url) };
    made(store, create("a", "https://example.com/a"));
    assert_eq!(ask(store, create("b", &"b".repeat(38))), CreateLinkAnswer::Full, "61 bytes");
    made(store, create("b", &"b".repeat(37)));
    assert_eq!(ask(store, create("c", "c")), CreateLinkAnswer::Full, "three links");
    made(store, create("a", "https://example.com/a"));
    let longer = ChangeLink { url: Some("b".repeat(38).into()), bounds, ..unchanged(domain, "b") };
    assert_eq!(ask(store, longer), ChangeLinkAnswer::Full);
    let shorter = ChangeLink { url: Some("b".into()), bounds, ..unchanged(domain, "b") };
    assert_eq!(&*changed(store, shorter).url, "b");
    let longer = ChangeLink { url: Some("b".repeat(37).into()), bounds, ..unchanged(domain, "b") };
    changed(store, longer);
    let none = ask(store, secret(DomainId(99), 1));
    assert!(none.is_err());
    let nowhere = super::links::create(DomainId(99), &["a"], URL);
    assert_eq!(ask(store, nowhere), CreateLinkAnswer::NoDomain);
}

pub(super) fn are_taken_down(store: &dyn Store) {
    let domain = with_secret(store);
    let link = made(store, create(domain, &["abc"], URL));
    let down = ChangeLink { removed: Some(Some(T.plus(1))), ..unchanged(domain, "abc") };
    let gone = changed(store, down.clone());
    assert_eq!(gone, Link { removed: Some(T.plus(1)), ..link.clone() });
    let later = ChangeLink { removed: Some(Some(T.plus(7))), ..down };
    assert_eq!(changed(store, later), gone, "it is down since the first time");
    assert_eq!(made(store, create(domain, &["abc"], URL)), gone, "its URL does not get a new one");
    let back = ChangeLink { removed: Some(None), ..unchanged(domain, "abc") };
    assert_eq!(changed(store, back), link);
    assert_eq!(ask(store, unchanged(domain, "none")), ChangeLinkAnswer::Missing);
}

pub(super) fn that_expired_begin_anew_or_are_forgotten(store: &dyn Store) {
    let domain = with_secret(store);
    let asked = CreateLink { expires: Some(T.plus(5)), ..create(domain, &["abc"], URL) };
    let link = made(store, asked.clone());
    let anew = CreateLink { now: T.plus(5), expires: Some(T.plus(50)), ..asked.clone() };
    let expected = Link { created: T.plus(5), expires: Some(T.plus(50)), ..link };
    assert_eq!(ask(store, anew), CreateLinkAnswer::Created(Box::new(expected)));
    made(store, create(domain, &["def"], "https://example.com/for-ever"));
    let sweep = |forget| Sweep { now: T, forget, max: 9 };
    assert!(!ask(store, sweep(T.plus(50))).more);
    assert!(found(store, domain, "abc").is_some());
    ask(store, sweep(T.plus(51)));
    assert_eq!(found(store, domain, "abc"), None);
    assert!(found(store, domain, "def").is_some());
    // What it took up is free again.
    let bounds = LinkBounds { links: 2, bytes: 60 };
    made(store, CreateLink { bounds, ..create(domain, &["ghi"], URL) });
}

pub(super) fn are_listed_newest_first(store: &dyn Store) {
    let (domain, other) = (with_secret(store), domain_named(store, "other.example"));
    ask(store, secret(other, 1)).expect("it is there");
    let url = |n: u64| format!("https://example.com/{}{n}", if n < 3 { "low" } else { "high" });
    let links: Vec<Link> =
        (1..=5).map(|n| made(store, create(domain, &[&format!("code{n}")], &url(n)))).collect();
    made(store, create(other, &["theirs"], URL));
    let newest_first = |links: &[Link]| links.iter().rev().cloned().collect::<Vec<_>>();
    assert_eq!(ask(store, all(domain)), LinksAnswer { links: newest_first(&links), next: None });
    let page = ask(store, Links { limit: 2, ..all(domain) });
    assert_eq!(page.links, newest_first(&links[3..]));
    let rest = ask(store, Links { before: page.next.expect("there are more"), ..all(domain) });
    assert_eq!(rest.links, newest_first(&links[..3]));
    let searched = |text: &str| ask(store, Links { search: text.into(), ..all(domain) }).links;
    assert_eq!(searched("/low"), newest_first(&links[..2]));
    assert_eq!(searched("code5"), links[4..]);
    assert!(searched("%").is_empty());
}

pub(super) fn have_a_secret_of_their_domain(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    assert_eq!(ask(store, secret(domain, 1)), Ok([1; 32]));
    assert_eq!(ask(store, secret(domain, 2)), Ok([1; 32]), "the first one stays");
    assert_eq!(ask(store, secret(other, 2)), Ok([2; 32]));
}

pub(super) fn are_counted(store: &dyn Store) {
    let domain = with_secret(store);
    let [a, b] = ["a", "b"].map(|code| made(store, create(domain, &[code], code)));
    let clicks = |link, clicks, at| LinkClicks { link, clicks, last: T.plus(at) };
    ask(
        store,
        CountClicks { clicks: vec![clicks(a.id, 2, 9), clicks(LinkId(999), 5, 1), clicks(b.id, 1, 1)] },
    );
    ask(store, CountClicks { clicks: vec![clicks(a.id, 3, 4)] });
    let counted = |code| found(store, domain, code).map(|link| (link.clicks, link.last_click));
    assert_eq!(counted("a"), Some((5, Some(T.plus(9)))));
    assert_eq!(counted("b"), Some((1, Some(T.plus(1)))));
}

pub(super) fn open_their_notifications(store: &dyn Store) {
    use NotificationState::{Acknowledged, Opened as Followed};
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, domain, "alice");
    for n in 1..=3 {
        stored(store, notification(domain, "alice", n));
    }
    end(store, vec![acknowledged(id(1))]);
    let clicks = vec![click(domain, 1, T.plus(7)), click(domain, 9, T), click(other, 2, T)];
    assert_eq!(ask(store, OpenNotifications { clicks }), [id(1)], "the others are not there");
    let again = OpenNotifications { clicks: vec![click(domain, 1, T.plus(8)), click(domain, 2, T.plus(9))] };
    assert_eq!(ask(store, again), [id(1), id(2)]);
    let opened = trace(store, id(1));
    assert_eq!(opened.opened, Some(Opened { at: T.plus(7), agent: AgentClass::Mobile }), "the first counts");
    assert_eq!((opened.state, opened.shown()), (Acknowledged, Followed));
    // Who follows the link has it.
    let second = trace(store, id(2));
    assert_eq!((second.acknowledged_by, second.ended), (Some(AcknowledgedBy::Link), Some(T.plus(9))));
    let left = waiting(store, domain, "alice", T);
    assert_eq!(left, [id(3)]);
    // Its end that is told later is not what ended it.
    assert_eq!(end(store, vec![acknowledged(id(2))]), [id(2)]);
    assert!(end(store, vec![acknowledged(id(1))]).is_empty());

    let told = |states| {
        let answer =
            ask(store, Events { after: 0, domain: Some(domain), wanted: EventFilter::from(states), max: 9 });
        answer
            .events
            .iter()
            .filter_map(|(_, event)| event.trace())
            .map(|trace| (trace.id, trace.shown()))
            .collect::<Vec<_>>()
    };
    let all = [(id(1), Acknowledged), (id(1), Followed), (id(2), Acknowledged), (id(2), Followed)];
    assert_eq!(told(States::ALL), all);
    assert_eq!(told(Followed.into()), [(id(1), Followed), (id(2), Followed)]);
    assert_eq!(told(Acknowledged.into()), [(id(1), Acknowledged), (id(2), Acknowledged)]);
    let listed = NotificationQuery {
        whose: Whose::Account(domain, "alice".into()),
        states: Followed.into(),
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 9,
    };
    let traces = ask(store, listed).traces;
    assert_eq!(traces.iter().map(|trace| trace.id).collect::<Vec<_>>(), [id(2), id(1)]);
}

pub(super) fn have_files(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let put = |file, body: Option<&'static str>| PutLinkFile { domain, file, body: body.map(Bytes::from) };
    let read = |domain, file| ask(store, ReadLinkFile { domain, file });
    done(store, put(LinkFile::Apple, Some("{}")));
    done(store, put(LinkFile::Apple, Some("{\"applinks\":{}}")));
    done(store, put(LinkFile::Android, Some("[]")));
    assert_eq!(read(domain, LinkFile::Apple).as_deref(), Some(&b"{\"applinks\":{}}"[..]));
    assert_eq!(read(domain, LinkFile::Android).as_deref(), Some(&b"[]"[..]));
    assert_eq!(read(other, LinkFile::Apple), None);
    done(store, put(LinkFile::Apple, None));
    assert_eq!(read(domain, LinkFile::Apple), None);
    missing(store, PutLinkFile { domain: DomainId(99), file: LinkFile::Apple, body: None });
}

pub(super) fn go_with_their_domain(store: &dyn Store) {
    let domain = with_secret(store);
    for code in ["a", "b", "c"] {
        let link = made(store, create(domain, &[code], code));
        ask(store, CountClicks { clicks: vec![LinkClicks { link: link.id, clicks: 1, last: T }] });
    }
    done(store, PutLinkFile { domain, file: LinkFile::Apple, body: Some(Bytes::from("{}")) });
    while answer!(ask(store, DeleteDomain { domain, now: T, rows_max: 2 }), Ok(part) => part.more) {}
    let anew = super::ground::domain(store);
    assert_eq!(ask(store, all(domain)), LinksAnswer::default());
    assert_eq!(ask(store, all(anew)), LinksAnswer::default());
    assert_eq!(ask(store, secret(anew, 7)), Ok([7; 32]));
    assert_eq!(ask(store, ReadLinkFile { domain: anew, file: LinkFile::Apple }), None);
}

/// One of every write, each of which changes something.
pub(super) fn every_write(domain: DomainId) -> Vec<Ask> {
    vec![
        secret(domain, 5).into(),
        create(domain, &["abc"], URL).into(),
        ChangeLink { removed: Some(Some(T)), ..unchanged(domain, "abc") }.into(),
        PutLinkFile { domain, file: LinkFile::Android, body: Some(Bytes::from("[]")) }.into(),
        CountClicks { clicks: Vec::new() }.into(),
        OpenNotifications { clicks: vec![click(domain, 5, T)] }.into(),
    ]
}

/// All that can be asked for, in words.
pub(super) fn state(store: &dyn Store, domain: DomainId) -> String {
    let files = LinkFile::ALL.map(|file| ask(store, ReadLinkFile { domain, file }));
    format!("{:?} {files:?}", ask(store, all(domain)))
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = with_secret(store);
    let link = made(store, create(domain, &["abc"], URL));
    ask(store, CountClicks { clicks: vec![LinkClicks { link: link.id, clicks: 3, last: T }] });
    done(store, PutLinkFile { domain, file: LinkFile::Apple, body: Some(Bytes::from("{}")) });
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domain(store);
    assert_eq!(found(store, domain, "abc").map(|link| link.clicks), Some(3));
    assert_eq!(ask(store, secret(domain, 9)), Ok([1; 32]));
    assert_eq!(ask(store, ReadLinkFile { domain, file: LinkFile::Apple }), Some(Bytes::from("{}")));
}

use super::*;
use crate::model::{MatchRules, RatingWindow};
use carillon_wire::frame::game::EndReason;

const BOUNDS: Bounds = Bounds { queues: 2, tickets: 6 };

struct Rig {
    maker: Matchmaker,
    random: Random,
    figures: MatchFigures,
    now: Now,
}

fn key() -> QueueKey {
    (DomainId(1), "duel".into())
}

fn ticket(id: &str, account: &str) -> NewTicket {
    let account = BareJid::new(&format!("{account}@localhost")).unwrap();
    NewTicket { id: id.into(), account, rating: 0, alike: Vec::new(), party: Vec::new() }
}

fn config(seats: u8, party_max: u8, is_open: bool) -> QueueConfig {
    let (rating, rules) = (RatingWindow::ANY, MatchRules::default());
    QueueConfig { seats, rating, wait_max_ms: 10_000, rules, party_max, is_open }
}

impl Rig {
    fn new() -> Rig {
        let mut rig = Rig {
            maker: Matchmaker::default(),
            random: Random::new([1; 32]),
            figures: MatchFigures::default(),
            now: Now { mono: Mono(1000), unix: UnixMs(5_000_000) },
        };
        let config = config(2, 1, true);
        let put = rig.ask(QueueRequest::Put { config });
        assert!(matches!(put, Ok(QueueOutcome::Queue { created: true, .. })));
        rig
    }

    fn ask(&mut self, request: QueueRequest) -> Result<QueueOutcome, QueueRefusal> {
        self.maker.request(&key(), request, self.now, BOUNDS, &mut self.figures)
    }

    fn enter(&mut self, ticket: NewTicket) -> Result<bool, QueueRefusal> {
        match self.ask(QueueRequest::Enter { ticket })? {
            QueueOutcome::Ticket { created, .. } => Ok(created),
            other => panic!("{other:?}"),
        }
    }

    fn state(&mut self, id: &str) -> Result<TicketState, QueueRefusal> {
        match self.ask(QueueRequest::Ticket { id: id.into() })? {
            QueueOutcome::Ticket { ticket, .. } => Ok(ticket.state),
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self) -> Vec<NewMatch> {
        self.maker.run(self.now, (Place::default(), 2), &mut self.random, &mut self.figures)
    }

    fn after(&mut self, ms: u64) {
        self.now = Now { mono: self.now.mono.plus(ms), unix: self.now.unix.plus(ms) };
    }
}

#[test]
fn a_ticket_is_one_however_often_it_is_sent() {
    let mut rig = Rig::new();
    assert_eq!(rig.enter(ticket("a", "alice")), Ok(true));
    assert_eq!(rig.enter(ticket("a", "alice")), Ok(false));
    assert_eq!(rig.enter(ticket("a", "bob")), Err(QueueRefusal::OtherTicket));
    assert_eq!(rig.enter(ticket("b", "alice")), Err(QueueRefusal::Present));
    assert_eq!(rig.run().len(), 0);
    assert_eq!(rig.enter(ticket("b", "bob")), Ok(true));
    let made = rig.run();
    assert_eq!((made.len(), rig.maker.due().is_some()), (1, true));
    let TicketState::Matched(seating) = rig.state("b").unwrap() else { panic!("not matched") };
    assert_eq!((seating.id, seating.seat, seating.accounts.len()), (made[0].id, 1, 2));
    let claim = token::SeatClaim::read(seating.token.as_bytes()).unwrap();
    assert!(claim.is_proved(&made[0].key, &seating.accounts[1]));
    assert_eq!(rig.ask(QueueRequest::Cancel { id: "a".into() }), Err(QueueRefusal::TooLate));
}

#[test]
fn a_cancelled_ticket_is_not_matched_and_its_account_may_enter_again() {
    let mut rig = Rig::new();
    rig.enter(ticket("a", "alice")).unwrap();
    assert_eq!(rig.ask(QueueRequest::Cancel { id: "a".into() }), Ok(QueueOutcome::Done));
    assert_eq!(rig.ask(QueueRequest::Cancel { id: "a".into() }), Err(QueueRefusal::NoTicket));
    rig.enter(ticket("b", "bob")).unwrap();
    assert!(rig.run().is_empty());
    assert_eq!(rig.enter(ticket("c", "alice")), Ok(true));
    assert_eq!(rig.run().len(), 1);
}

#[test]
fn tickets_of_a_match_that_is_refused_wait_again_with_what_they_waited() {
    let mut rig = Rig::new();
    rig.enter(ticket("a", "alice")).unwrap();
    rig.after(2000);
    rig.enter(ticket("b", "bob")).unwrap();
    let id = rig.run()[0].id;
    rig.maker.refused(&key(), id, rig.now.mono, &mut rig.figures);
    assert_eq!(rig.state("a"), Ok(TicketState::Waiting));
    assert!(rig.run().is_empty());
    rig.after(1000);
    let again = rig.run();
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].id, id);
    let TicketState::Matched(seating) = rig.state("a").unwrap() else { panic!("not matched") };
    assert_eq!((seating.id, seating.waited_ms), (again[0].id, 3000));
}

#[test]
fn tickets_expire_end_and_are_forgotten() {
    let mut rig = Rig::new();
    rig.enter(ticket("a", "alice")).unwrap();
    rig.after(10_000);
    assert!(rig.run().is_empty());
    assert_eq!(rig.state("a"), Ok(TicketState::Expired));
    assert_eq!(rig.enter(ticket("a2", "alice")), Ok(true));
    rig.enter(ticket("b", "bob")).unwrap();
    let id = rig.run()[0].id;
    let result = MatchResult { id, reason: EndReason::Duration, tick: 9, seats: 3, outcome: Vec::new() };
    // It plays longer than it may wait.
    rig.after(20_000);
    rig.run();
    rig.maker.ended(&key(), &result, rig.now.mono, &mut rig.figures);
    assert_eq!(rig.state("b"), Ok(TicketState::Ended(result.clone())));
    assert_eq!(rig.enter(ticket("b2", "bob")), Ok(true));
    rig.after(KEPT_MS);
    rig.run();
    assert_eq!(rig.state("b"), Err(QueueRefusal::NoTicket));
    assert_eq!(rig.state("a"), Err(QueueRefusal::NoTicket));
    rig.after(KEPT_MS);
    rig.run();
    assert_eq!((rig.maker.tickets, rig.maker.load.clone()), (0, vec![0, 0]));
}

#[test]
fn queues_and_tickets_are_bounded() {
    let mut rig = Rig::new();
    for n in 0..6 {
        rig.enter(ticket(&format!("t{n}"), &format!("u{n}"))).unwrap();
    }
    assert_eq!(rig.enter(ticket("t6", "u6")), Err(QueueRefusal::TooManyTickets));
    assert_eq!(rig.run().len(), 3);
    // Both shards have their part.
    assert_eq!(rig.maker.load.iter().min(), Some(&1));
    let QueueOutcome::Queue { queue, .. } = rig.ask(QueueRequest::Get).unwrap() else { panic!() };
    assert_eq!((queue.waiting, queue.matches, queue.made), (0, 3, 3));
    for n in 0..2 {
        let request = QueueRequest::Put { config: queue.config.clone() };
        let key = (DomainId(1), format!("other{n}").into());
        let put = rig.maker.request(&key, request, rig.now, BOUNDS, &mut rig.figures);
        assert_eq!(put.is_ok(), n == 0, "{put:?}");
    }
    assert_eq!(rig.ask(QueueRequest::Delete), Ok(QueueOutcome::Done));
    assert_eq!((rig.maker.tickets, rig.maker.load.clone()), (0, vec![0, 0]));
    assert_eq!(rig.state("t0"), Err(QueueRefusal::NoQueue));
}

fn party(id: &str, accounts: &[&str]) -> NewTicket {
    let jid = |name: &&str| BareJid::new(&format!("{name}@localhost")).unwrap();
    let (first, others) = accounts.split_first().unwrap();
    NewTicket { party: others.iter().map(jid).collect(), ..ticket(id, first) }
}

#[test]
fn a_party_is_in_one_match_and_each_of_it_has_a_token() {
    let mut rig = Rig::new();
    rig.ask(QueueRequest::Delete).unwrap();
    let config = config(3, 2, false);
    rig.ask(QueueRequest::Put { config }).unwrap();
    assert_eq!(rig.enter(party("p", &["a", "b", "c"])), Err(QueueRefusal::PartyTooLarge));
    assert_eq!(rig.enter(party("p", &["a", "a"])), Err(QueueRefusal::Twice));
    assert_eq!(rig.enter(party("p", &["alice", "bob"])), Ok(true));
    assert_eq!(rig.enter(party("p", &["alice", "bob"])), Ok(false));
    assert_eq!(rig.enter(party("q", &["carol", "bob"])), Err(QueueRefusal::Present));
    assert!(rig.run().is_empty());
    assert_eq!(rig.enter(party("q", &["carol", "dave"])), Ok(true));
    // Two and two are too many for three seats.
    assert!(rig.run().is_empty());
    assert_eq!(rig.enter(ticket("e", "eve")), Ok(true));
    let made = rig.run();
    let names: Vec<&str> = made[0].accounts.iter().map(BareJid::as_str).collect();
    assert_eq!(names, ["alice@localhost", "bob@localhost", "eve@localhost"]);
    let TicketState::Matched(seating) = rig.state("p").unwrap() else { panic!("not matched") };
    assert_eq!((seating.seat, seating.party[0].0), (0, 1));
    let claim = token::SeatClaim::read(seating.party[0].1.as_bytes()).unwrap();
    assert!(claim.seat == 1 && claim.is_proved(&made[0].key, &made[0].accounts[1]));
    let TicketState::Matched(seating) = rig.state("e").unwrap() else { panic!("not matched") };
    assert_eq!(seating.seat, 2);
    // When it is over all of the party may enter again.
    let result =
        MatchResult { id: made[0].id, reason: EndReason::Duration, tick: 9, seats: 7, outcome: Vec::new() };
    rig.maker.ended(&key(), &result, rig.now.mono, &mut rig.figures);
    assert_eq!(rig.enter(ticket("b", "bob")), Ok(true));
}

impl Rig {
    /// A session of an account wishes to play.
    fn enter_by(&mut self, id: &str, session: &str) -> Result<TicketView, QueueRefusal> {
        let jid = Jid::new(&format!("{session}@localhost/r")).unwrap();
        self.maker.enter_by(&key(), ticket(id, session), &jid, self.now, 6, &mut self.figures)
    }

    /// What sessions are told: whom, of which ticket, and its state.
    fn told(&mut self) -> Vec<(String, String, TicketState)> {
        let news = self.maker.news().into_iter();
        news.map(|News { to, ticket, .. }| (to.to_string(), ticket.ticket.id.into(), ticket.state)).collect()
    }
}

#[test]
fn who_enters_a_ticket_by_a_session_is_told_what_becomes_of_it() {
    let mut rig = Rig::new();
    assert_eq!(rig.enter_by("a", "alice").unwrap().state, TicketState::Waiting);
    // Once: the account's own ticket is what it is told of then.
    assert_eq!(&*rig.enter_by("b", "alice").unwrap().ticket.id, "a");
    assert_eq!(rig.enter(ticket("t", "bob")), Ok(true));
    assert_eq!(rig.run().len(), 1);
    let told = rig.told();
    assert!(
        matches!(&told[..], [(to, id, TicketState::Matched(_))] if to == "alice@localhost/r" && id == "a")
    );
    assert!(rig.told().is_empty());
    // One that nobody wants to play with.
    rig.enter_by("c", "carol").unwrap();
    rig.now.mono = rig.now.mono.plus(10_000);
    assert!(rig.run().is_empty());
    assert_eq!(rig.told(), [("carol@localhost/r".into(), "c".into(), TicketState::Expired)]);
    assert_eq!(rig.maker.ticket_of(&key(), &ticket("", "carol").account), Err(QueueRefusal::NoTicket));
}

#[test]
fn an_account_withdraws_its_own_ticket_and_no_others() {
    let mut rig = Rig::new();
    let [alice, bob] = ["alice", "bob"].map(|name| ticket("", name).account);
    rig.enter_by("a", "alice").unwrap();
    let withdraw = |rig: &mut Rig, account| rig.maker.withdraw(&key(), account, &mut rig.figures);
    assert_eq!(withdraw(&mut rig, &bob), Err(QueueRefusal::NoTicket));
    assert_eq!(withdraw(&mut rig, &alice).map(|view| view.ticket.id), Ok("a".into()));
    assert_eq!((withdraw(&mut rig, &alice), rig.maker.tickets), (Err(QueueRefusal::NoTicket), 0));
}

#[test]
fn a_queue_that_is_not_open_takes_tickets_of_its_operator_only() {
    let mut rig = Rig::new();
    rig.ask(QueueRequest::Delete).unwrap();
    let config = config(2, 2, false);
    rig.ask(QueueRequest::Put { config }).unwrap();
    assert_eq!(rig.enter_by("a", "alice"), Err(QueueRefusal::NotOpen));
    rig.enter(party("p", &["alice", "bob"])).unwrap();
    let [alice, bob] = ["alice", "bob"].map(|name| ticket("", name).account);
    assert_eq!(rig.maker.withdraw(&key(), &alice, &mut rig.figures), Err(QueueRefusal::NotOpen));
    // Each of a party learns its own seat and token.
    rig.run();
    let seats = [&alice, &bob].map(|account| match rig.maker.ticket_of(&key(), account).unwrap().state {
        TicketState::Matched(seating) => (seating.seat, seating.token, seating.party),
        other => panic!("{other:?}"),
    });
    assert_eq!((seats[0].0, seats[1].0), (0, 1));
    assert!(seats[0].1 != seats[1].1 && seats.iter().all(|(_, _, others)| others.is_empty()));
}

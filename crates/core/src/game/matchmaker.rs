//! The queues of the matchmaker: who wants to play, and with whom they do.

use super::pool::{Group, Number, Pool};
use super::token;
use crate::command::{QueueOutcome, QueueRefusal, QueueRequest};
use crate::message::{NewMatch, QueueAddress};
use crate::model::{
    DomainId, Map, MatchId, MatchResult, Mono, NewTicket, Now, Place, QueueConfig, QueueView, Seating,
    ShardId, TicketState, TicketView, UnixMs,
};
use crate::random::Random;
use crate::shard::MatchFigures;
use carillon_wire::jid::{BareJid, Jid};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What there may be of queues and tickets on a shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) queues: usize,
    pub(super) tickets: usize,
}

/// What names a queue.
pub(super) type QueueKey = (DomainId, Box<str>);

/// All queues whose home a shard is.
#[derive(Debug, Default)]
pub(super) struct Matchmaker {
    queues: Map<QueueKey, Queue>,
    /// Tickets of all queues, those included whose match is made.
    tickets: usize,
    /// Matches of all queues on each shard of the node.
    load: Vec<u32>,
    due: Option<Mono>,
    /// What sessions are to be told of tickets that they entered.
    news: Vec<News>,
}

/// What a session is to be told of a ticket that it entered.
#[derive(Debug)]
pub(super) struct News {
    pub(super) queue: QueueKey,
    pub(super) to: Jid,
    pub(super) ticket: TicketView,
}

/// A queue.
#[derive(Debug)]
struct Queue {
    config: QueueConfig,
    pool: Pool,
    last: Number,
    by_id: Map<Box<str>, Number>,
    /// Who has a ticket that is not over.
    by_account: Map<BareJid, Number>,
    tickets: Map<Number, Ticket>,
    matches: Map<MatchId, Made>,
    /// When tickets expire, or are forgotten.
    timers: BTreeSet<(Mono, Number)>,
    /// No match is made before this: the node takes none now.
    not_before: Mono,
    made: u64,
    /// Of the last matches: what was waited, and how far ratings were apart, as means that forget.
    waited_ms: f64,
    apart: f64,
}

#[derive(Debug)]
struct Ticket {
    ticket: NewTicket,
    created: UnixMs,
    since: Mono,
    standing: Standing,
    /// The session that entered it, where one did.
    watcher: Option<Box<Jid>>,
}

#[derive(Debug)]
enum Standing {
    Waiting,
    Matched { id: MatchId, seat: u8, waited_ms: u64 },
    Ended(MatchResult),
    Expired,
}

/// A match that was made.
#[derive(Debug)]
struct Made {
    key: [u8; 32],
    expires: UnixMs,
    accounts: Vec<BareJid>,
    tickets: Vec<Number>,
}

impl Matchmaker {
    /// When something is to be done by itself.
    pub(super) fn due(&self) -> Option<Mono> {
        self.due
    }

    /// Does what is asked of a queue.
    pub(super) fn request(
        &mut self,
        key: &QueueKey,
        request: QueueRequest,
        now: Now,
        bounds: Bounds,
        figures: &mut MatchFigures,
    ) -> Result<QueueOutcome, QueueRefusal> {
        let outcome = match request {
            QueueRequest::Put { config } => self.put(key, config, bounds),
            QueueRequest::Delete => self.delete(key),
            QueueRequest::Get => {
                let queue = self.queues.get(key).ok_or(QueueRefusal::NoQueue)?;
                Ok(QueueOutcome::Queue { queue: queue.view(), created: false })
            }
            QueueRequest::Enter { ticket } => self.enter(key, ticket, None, now, bounds.tickets),
            QueueRequest::Ticket { id } => {
                let queue = self.queues.get(key).ok_or(QueueRefusal::NoQueue)?;
                let number = queue.by_id.get(&id).ok_or(QueueRefusal::NoTicket)?;
                let ticket = queue.ticket(*number).ok_or(QueueRefusal::NoTicket)?;
                Ok(QueueOutcome::Ticket { ticket, created: false })
            }
            QueueRequest::Cancel { id } => self.cancel(key, &id),
        };
        self.changed(figures);
        outcome
    }

    fn put(
        &mut self,
        key: &QueueKey,
        config: QueueConfig,
        bounds: Bounds,
    ) -> Result<QueueOutcome, QueueRefusal> {
        if let Some(queue) = self.queues.get(key) {
            return Ok(QueueOutcome::Queue { queue: queue.view(), created: false });
        }
        if self.queues.len() >= bounds.queues {
            return Err(QueueRefusal::TooManyQueues);
        }
        let queue = Queue::new(config);
        let view = queue.view();
        self.queues.insert(key.clone(), queue);
        Ok(QueueOutcome::Queue { queue: view, created: true })
    }

    fn delete(&mut self, key: &QueueKey) -> Result<QueueOutcome, QueueRefusal> {
        let queue = self.queues.remove(key).ok_or(QueueRefusal::NoQueue)?;
        self.forget(&queue);
        Ok(QueueOutcome::Done)
    }

    /// Forgets the queues that are not to be kept.
    pub(super) fn keep(&mut self, keeps: impl Fn(&QueueKey) -> bool, figures: &mut MatchFigures) {
        let gone: Vec<QueueKey> = self.queues.keys().filter(|key| !keeps(key)).cloned().collect();
        for queue in gone.iter().filter_map(|key| self.queues.remove(key)).collect::<Vec<_>>() {
            self.forget(&queue);
        }
        self.changed(figures);
    }

    /// A queue is gone: its matches go on, and are nobody's.
    fn forget(&mut self, queue: &Queue) {
        self.tickets -= queue.tickets.len();
        for id in queue.matches.keys() {
            self.unload(*id);
        }
    }

    fn unload(&mut self, id: MatchId) {
        if let Some(load) = self.load.get_mut(usize::from(id.home().shard.0)) {
            *load = load.saturating_sub(1);
        }
    }

    fn enter(
        &mut self,
        key: &QueueKey,
        ticket: NewTicket,
        watcher: Option<Box<Jid>>,
        now: Now,
        tickets_max: usize,
    ) -> Result<QueueOutcome, QueueRefusal> {
        let queue = self.queues.get_mut(key).ok_or(QueueRefusal::NoQueue)?;
        if let Some(number) = queue.by_id.get(&ticket.id).copied() {
            let present = queue.ticket(number).ok_or(QueueRefusal::NoTicket)?;
            return match present.ticket == ticket {
                true => Ok(QueueOutcome::Ticket { ticket: present, created: false }),
                false => Err(QueueRefusal::OtherTicket),
            };
        }
        if ticket.seats() > queue.config.party_max.max(1) {
            return Err(QueueRefusal::PartyTooLarge);
        }
        let is_twice = |(at, account)| ticket.accounts().take(at).any(|other| other == account);
        if ticket.accounts().enumerate().any(is_twice) {
            return Err(QueueRefusal::Twice);
        }
        if ticket.accounts().any(|account| queue.by_account.contains_key(account)) {
            return Err(QueueRefusal::Present);
        }
        if self.tickets >= tickets_max {
            return Err(QueueRefusal::TooManyTickets);
        }
        queue.last += 1;
        let number = queue.last;
        queue.by_id.insert(ticket.id.clone(), number);
        for account in ticket.accounts() {
            queue.by_account.insert(account.clone(), number);
        }
        let created = now.unix;
        let ticket = Ticket { ticket, created, since: now.mono, standing: Standing::Waiting, watcher };
        queue.wait(number, &ticket);
        queue.tickets.insert(number, ticket);
        self.tickets += 1;
        let ticket = queue.ticket(number).ok_or(QueueRefusal::NoTicket)?;
        Ok(QueueOutcome::Ticket { ticket, created: true })
    }

    /// Enters the ticket of an account that wishes it by a session; the one that the account has there, if it has.
    pub(super) fn enter_by(
        &mut self,
        key: &QueueKey,
        ticket: NewTicket,
        session: &Jid,
        now: Now,
        tickets_max: usize,
        figures: &mut MatchFigures,
    ) -> Result<TicketView, QueueRefusal> {
        let queue = self.queues.get_mut(key).ok_or(QueueRefusal::NoQueue)?;
        if !queue.config.is_open {
            return Err(QueueRefusal::NotOpen);
        }
        if let Some(number) = queue.by_account.get(&ticket.account).copied() {
            let own = queue.tickets.get_mut(&number).filter(|it| it.ticket.account == ticket.account);
            if let Some(present) = own {
                // It may be another session by now.
                present.watcher = Some(Box::new(session.clone()));
            }
            return queue.own_ticket(number, &ticket.account);
        }
        let entered = self.enter(key, ticket, Some(Box::new(session.clone())), now, tickets_max);
        self.changed(figures);
        match entered? {
            QueueOutcome::Ticket { ticket, .. } => Ok(ticket),
            QueueOutcome::Done | QueueOutcome::Queue { .. } => Err(QueueRefusal::NoTicket),
        }
    }

    /// The ticket that an account has in a queue.
    pub(super) fn ticket_of(&self, key: &QueueKey, account: &BareJid) -> Result<TicketView, QueueRefusal> {
        let queue = self.queues.get(key).ok_or(QueueRefusal::NoQueue)?;
        let number = queue.by_account.get(account).ok_or(QueueRefusal::NoTicket)?;
        queue.own_ticket(*number, account)
    }

    /// Withdraws the ticket of an account, as it was.
    pub(super) fn withdraw(
        &mut self,
        key: &QueueKey,
        account: &BareJid,
        figures: &mut MatchFigures,
    ) -> Result<TicketView, QueueRefusal> {
        let ticket = self.ticket_of(key, account)?;
        if !self.queues.get(key).is_some_and(|queue| queue.config.is_open) {
            return Err(QueueRefusal::NotOpen);
        }
        if ticket.ticket.account != *account {
            return Err(QueueRefusal::NoTicket);
        }
        let withdrawn = self.cancel(key, &ticket.ticket.id);
        self.changed(figures);
        withdrawn.map(|_| ticket)
    }

    /// What sessions are to be told.
    pub(super) fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// A session is told otherwise.
    pub(super) fn forget_news(&mut self, session: &Jid) {
        self.news.retain(|news| news.to != *session);
    }

    fn cancel(&mut self, key: &QueueKey, id: &str) -> Result<QueueOutcome, QueueRefusal> {
        let queue = self.queues.get_mut(key).ok_or(QueueRefusal::NoQueue)?;
        let number = *queue.by_id.get(id).ok_or(QueueRefusal::NoTicket)?;
        if !queue.pool.remove(number) {
            return Err(QueueRefusal::TooLate);
        }
        queue.drop_ticket(number);
        self.tickets -= 1;
        Ok(QueueOutcome::Done)
    }

    /// Does what is due: expires tickets, forgets old ones, and makes the matches that can be made. `home` is this shard.
    pub(super) fn run(
        &mut self,
        now: Now,
        (home, shards): (Place, u16),
        random: &mut Random,
        figures: &mut MatchFigures,
    ) -> Vec<NewMatch> {
        let mut new = Vec::new();
        self.load.resize(shards.into(), 0);
        for (key, queue) in &mut self.queues {
            let (forgotten, expired) = queue.expire(now.mono, figures);
            self.tickets -= forgotten;
            self.news.extend(queue.news_of(key, &expired));
            while queue.not_before <= now.mono
                && let Some(group) = queue.pool.take(now.mono)
            {
                let shard = lightest(&self.load, random);
                if let Some(load) = self.load.get_mut(usize::from(shard)) {
                    *load += 1;
                }
                let id = MatchId::new(Place { shard: ShardId(shard), ..home }, random.number());
                let address = QueueAddress { place: home, domain: key.0, name: key.1.clone() };
                new.push(queue.make(&group, id, address, now, random, figures));
                self.news.extend(queue.news_of(key, &group.tickets));
            }
        }
        self.changed(figures);
        new
    }

    /// The home of a match does not take it: its tickets wait again, before those that came after them.
    pub(super) fn refused(&mut self, key: &QueueKey, id: MatchId, now: Mono, figures: &mut MatchFigures) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        let Some(made) = queue.matches.remove(&id) else { return };
        queue.not_before = now.plus(PAUSE_MS);
        for number in &made.tickets {
            let Some(mut ticket) = queue.tickets.remove(number) else { continue };
            ticket.standing = Standing::Waiting;
            queue.wait(*number, &ticket);
            queue.tickets.insert(*number, ticket);
        }
        self.news.extend(queue.news_of(key, &made.tickets));
        self.unload(id);
        self.changed(figures);
    }

    /// A match is over.
    pub(super) fn ended(
        &mut self,
        key: &QueueKey,
        result: &MatchResult,
        now: Mono,
        figures: &mut MatchFigures,
    ) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        let Some(made) = queue.matches.remove(&result.id) else { return };
        for number in made.tickets {
            if let Some(ticket) = queue.tickets.get_mut(&number) {
                ticket.standing = Standing::Ended(result.clone());
                for account in ticket.ticket.accounts() {
                    queue.by_account.remove(account);
                }
                queue.timers.insert((now.plus(KEPT_MS), number));
            }
        }
        self.unload(result.id);
        self.changed(figures);
    }

    fn changed(&mut self, figures: &mut MatchFigures) {
        self.due = self.queues.values().filter_map(Queue::due).min();
        figures.queues = self.queues.len() as u64;
        figures.waiting = self.queues.values().map(|queue| queue.pool.len() as u64).sum();
    }
}

/// The shard with the fewest matches; of several, any.
fn lightest(load: &[u32], random: &mut Random) -> u16 {
    let least = load.iter().min().copied().unwrap_or(0);
    let lightest: Vec<usize> =
        load.iter().enumerate().filter(|(_, n)| **n == least).map(|(at, _)| at).collect();
    let any = random.number() as usize % lightest.len().max(1);
    lightest.get(any).map_or(0, |shard| *shard as u16)
}

impl Queue {
    fn new(config: QueueConfig) -> Queue {
        Queue {
            pool: Pool::new(config.seats.into(), config.rating, config.party_max > 1),
            config,
            last: 0,
            by_id: Map::default(),
            by_account: Map::default(),
            tickets: Map::default(),
            matches: Map::default(),
            timers: BTreeSet::new(),
            not_before: Mono(0),
            made: 0,
            waited_ms: 0.0,
            apart: 0.0,
        }
    }

    fn due(&self) -> Option<Mono> {
        let matched = self.pool.next_due().map(|at| at.max(self.not_before));
        let timed = self.timers.first().map(|(at, _)| *at);
        matched.into_iter().chain(timed).min()
    }

    fn view(&self) -> QueueView {
        QueueView {
            config: self.config.clone(),
            waiting: self.pool.len() as u64,
            matches: self.matches.len() as u64,
            made: self.made,
            waited_ms: self.waited_ms as u64,
            apart: self.apart as u64,
        }
    }

    /// A ticket waits.
    fn wait(&mut self, number: Number, ticket: &Ticket) {
        let mut bucket = String::new();
        for (name, value) in &ticket.ticket.alike {
            // With their lengths nothing can be read in two ways.
            let _ = write!(bucket, "{}:{name}{}:{value}", name.len(), value.len());
        }
        self.timers.insert((ticket.since.plus(self.config.wait_max_ms.into()), number));
        self.pool.add(number, &bucket, ticket.ticket.rating, ticket.since, ticket.ticket.seats());
    }

    fn drop_ticket(&mut self, number: Number) {
        let Some(ticket) = self.tickets.remove(&number) else { return };
        self.by_id.remove(&ticket.ticket.id);
        for account in ticket.ticket.accounts() {
            if self.by_account.get(account) == Some(&number) {
                self.by_account.remove(account);
            }
        }
    }

    /// Expires tickets that waited too long, and forgets what was over long ago. Returns how many it forgot, and which expired.
    fn expire(&mut self, now: Mono, figures: &mut MatchFigures) -> (usize, Vec<Number>) {
        let (mut forgotten, mut expired) = (0, Vec::new());
        while let Some(&(at, number)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, number));
            let Some(ticket) = self.tickets.get_mut(&number) else { continue };
            match ticket.standing {
                Standing::Waiting => {
                    ticket.standing = Standing::Expired;
                    for account in ticket.ticket.accounts() {
                        self.by_account.remove(account);
                    }
                    self.pool.remove(number);
                    self.timers.insert((now.plus(KEPT_MS), number));
                    figures.tickets_expired += 1;
                    expired.push(number);
                }
                Standing::Ended(_) | Standing::Expired => {
                    self.drop_ticket(number);
                    forgotten += 1;
                }
                // Its time to wait ended while it plays.
                Standing::Matched { .. } => {}
            }
        }
        (forgotten, expired)
    }

    /// What sessions are to be told of these tickets, of those that a session entered.
    fn news_of(&self, queue: &QueueKey, tickets: &[Number]) -> Vec<News> {
        let watched = tickets.iter().filter_map(|number| {
            let to = self.tickets.get(number)?.watcher.as_deref()?;
            Some(News { queue: queue.clone(), to: to.clone(), ticket: self.ticket(*number)? })
        });
        watched.collect()
    }

    /// A ticket for one of its accounts, which knows the token of its own seat and no other.
    fn own_ticket(&self, number: Number, account: &BareJid) -> Result<TicketView, QueueRefusal> {
        let mut view = self.ticket(number).ok_or(QueueRefusal::NoTicket)?;
        if let TicketState::Matched(seating) = &mut view.state {
            let others = std::mem::take(&mut seating.party);
            let at = view.ticket.party.iter().position(|other| other == account);
            if let Some((seat, token)) = at.and_then(|at| others.into_iter().nth(at)) {
                (seating.seat, seating.token) = (seat, token);
            }
        }
        Ok(view)
    }

    fn make(
        &mut self,
        group: &Group,
        id: MatchId,
        queue: QueueAddress,
        now: Now,
        random: &mut Random,
        figures: &mut MatchFigures,
    ) -> NewMatch {
        let (key, seed) = (random.bytes(), random.number());
        let mut accounts = Vec::with_capacity(self.config.seats.into());
        for number in &group.tickets {
            let Some(ticket) = self.tickets.get_mut(number) else { continue };
            let waited_ms = now.mono.since(ticket.since);
            figures.waited.record(waited_ms);
            forget_slowly(&mut self.waited_ms, waited_ms);
            let seat = accounts.len() as u8;
            accounts.extend(ticket.ticket.accounts().cloned());
            ticket.standing = Standing::Matched { id, seat, waited_ms };
        }
        self.made += 1;
        forget_slowly(&mut self.apart, group.apart);
        let expires = now.unix.plus(self.config.rules.join_ms.into());
        let made = Made { key, expires, accounts: accounts.clone(), tickets: group.tickets.clone() };
        self.matches.insert(id, made);
        NewMatch { id, queue, rules: self.config.rules.clone(), accounts, key, seed }
    }

    fn ticket(&self, number: Number) -> Option<TicketView> {
        let Ticket { ticket, created, standing, .. } = self.tickets.get(&number)?;
        let state = match standing {
            Standing::Waiting => TicketState::Waiting,
            Standing::Expired => TicketState::Expired,
            Standing::Ended(result) => TicketState::Ended(result.clone()),
            Standing::Matched { id, seat, waited_ms } => {
                let made = self.matches.get(id)?;
                let mint = |seat: u8, account: &BareJid| {
                    token::mint(&made.key, *id, seat, made.expires, account.as_str())
                };
                let others = (seat + 1..).zip(&ticket.party);
                TicketState::Matched(Box::new(Seating {
                    id: *id,
                    seat: *seat,
                    accounts: made.accounts.clone(),
                    token: mint(*seat, &ticket.account),
                    expires: made.expires,
                    waited_ms: *waited_ms,
                    party: others.map(|(seat, account)| (seat, mint(seat, account))).collect(),
                }))
            }
        };
        Some(TicketView { ticket: ticket.clone(), created: *created, state })
    }
}

/// A mean of about the last fifty values.
fn forget_slowly(mean: &mut f64, value: u64) {
    *mean += (value as f64 - *mean) / 50.0;
}

/// How long the ticket of a match that is over is remembered, in milliseconds.
const KEPT_MS: u64 = 60_000;
/// How long no match is made when the node does not take one, in milliseconds.
const PAUSE_MS: u64 = 1000;

#[cfg(test)]
#[path = "matchmaker_tests.rs"]
mod tests;

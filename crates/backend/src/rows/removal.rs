//! Removing accounts and domains in parts: what belongs to them and in which order it goes, in one list for all databases and for all ways.
//!
//! Each store has a test that fills every table of its database: one that is added and not listed here fails it.

use carillon_core::model::{AccountId, DomainId, RoomId, RosterChange, TopicId, UnixMs};
use carillon_core::ports::Part;
use carillon_wire::jid::BareJid;

/// Rows of a table.
pub(crate) struct Rows {
    pub(crate) table: &'static str,
    /// Columns that name a row.
    pub(crate) key: &'static str,
    /// The condition that selects them; `$1` is the number of their owner.
    pub(crate) which: &'static str,
}

const fn rows(table: &'static str, key: &'static str, which: &'static str) -> Rows {
    Rows { table, key, which }
}

/// The rows of the account `$1`, in an order in which nothing that is left refers to what is gone. Archives are not here: they are removed message by
/// message, once their accounts are gone.
const OF_ACCOUNT: &[Rows] = &[
    rows(
        "push_step",
        "notification, registration",
        "notification IN (SELECT id FROM notification WHERE account = $1)",
    ),
    rows("notification", "seq", "account = $1"),
    rows("offline", "seq", "account = $1"),
    rows("push", "id", "registration IN (SELECT id FROM push_registration WHERE account = $1)"),
    rows(
        "push_room",
        "room, jid, registration",
        "registration IN (SELECT id FROM push_registration WHERE account = $1)",
    ),
    rows("push_registration", "id", "account = $1"),
    rows("endpoint", "id", "account = $1"),
    rows("contact", "account, jid", "account = $1"),
    rows("blocked", "account, jid", "account = $1"),
    rows("privacy", "account", "account = $1"),
    rows("room_block", "account, is_room, jid", "account = $1"),
    rows("private", "account, ns, name", "account = $1"),
    rows("account_node_item", "node, revision", "node IN (SELECT id FROM account_node WHERE account = $1)"),
    rows("account_node", "id", "account = $1"),
    rows("last_available", "account", "account = $1"),
    rows("vcard", "account", "account = $1"),
    rows("archive_rule", "account, jid, wanted", "account = $1"),
    rows("subscription", "account, topic", "account = $1"),
    rows("upload", "id", "account = $1"),
    rows("upload_account", "account", "account = $1"),
    rows("invitation", "id", "account = $1"),
    rows(
        "broadcast_end",
        "broadcast, account",
        "account = $1 AND broadcast IN (SELECT seq FROM broadcast WHERE has_ends AND domain = (SELECT domain FROM account WHERE id = $1))",
    ),
];

/// The account, and the note that it is being removed: both go with the last part.
const ACCOUNT: Rows = rows("account", "id", "id = $1");
const ACCOUNT_UNFINISHED: Rows = rows("removal", "account, domain", "account = $1");

/// Removed of the topic `$1` after its items and subscriptions: its affiliations, and then the topic together with its owners (affiliation 4).
const OF_TOPIC: Whole = Whole {
    rest: &[rows("affiliation", "topic, jid", "topic = $1 AND affiliation < 4")],
    owners: rows("affiliation", "topic, jid", "topic = $1"),
    itself: rows("topic", "id", "id = $1"),
};

/// The same of the room `$1`. Its messages are swept.
const OF_ROOM: Whole = Whole {
    rest: &[
        rows("room_vcard", "room", "room = $1"),
        rows("push_room", "room, jid, registration", "room = $1"),
        rows("room_member", "room, jid", "room = $1 AND affiliation < 4"),
    ],
    owners: rows("room_member", "room, jid", "room = $1"),
    itself: rows("room", "id", "id = $1"),
};

/// Something with owners, who may have the rest of it removed: they go last, together with it.
struct Whole {
    rest: &'static [Rows],
    owners: Rows,
    itself: Rows,
}

/// The rows of the domain `$1` that are no account's, topic's or room's.
const OF_DOMAIN: &[Rows] = &[
    rows("link_click", "link", "link IN (SELECT id FROM link WHERE domain = $1)"),
    rows("link", "id", "domain = $1"),
    rows("event", "number", "domain = $1"),
    rows("held_name", "domain, local", "domain = $1"),
    rows("invitation", "id", "domain = $1"),
    rows("link_file", "domain, file", "domain = $1"),
    rows("link_domain", "domain", "domain = $1"),
    rows(
        "idempotency_line",
        "key, idempotency_key, block",
        "key IN (SELECT id FROM api_key WHERE domain = $1)",
    ),
    rows("idempotency", "key, idempotency_key", "key IN (SELECT id FROM api_key WHERE domain = $1)"),
    rows("api_key", "id", "domain = $1"),
    rows("upload_domain", "domain", "domain = $1"),
    rows("broadcast_end", "broadcast, account", "broadcast IN (SELECT seq FROM broadcast WHERE domain = $1)"),
    rows(
        "broadcast_given",
        "broadcast, counter",
        "broadcast IN (SELECT seq FROM broadcast WHERE domain = $1)",
    ),
    rows("broadcast", "seq", "domain = $1"),
    rows("dead_letter", "webhook, event", "webhook IN (SELECT id FROM webhook WHERE domain = $1)"),
    rows("webhook", "id", "domain = $1"),
];
/// Removed in one step with the domain, a row each: a domain without its grant would not be found.
const DOMAIN: &[Rows] = &[
    rows("removal", "account, domain", "account = 0 AND domain = $1"),
    rows("domain_grant", "domain", "domain = $1"),
    rows("domain", "id", "id = $1"),
];

/// What a domain has first: the number and the name of an account, a topic or a room.
const FIRST_ACCOUNT: &str = "SELECT id, local FROM account WHERE domain = $1 ORDER BY local LIMIT 1";
const FIRST_TOPIC: &str = "SELECT id, name FROM topic WHERE domain = $1 ORDER BY name LIMIT 1";
const FIRST_ROOM: &str = "SELECT id, name FROM room WHERE domain = $1 ORDER BY name LIMIT 1";

/// A transaction in which something is removed. What takes a `max` does no more than so many at once, and tells how many these were.
pub(crate) trait Removes {
    /// What goes wrong with it.
    type Error;

    /// Deletes rows.
    fn delete(&mut self, rows: &Rows, of: i64, max: usize) -> Result<usize, Self::Error>;

    /// The first row, a number and a name, of a question about a domain.
    fn first(&mut self, question: &str, domain: DomainId) -> Result<Option<(u64, Box<str>)>, Self::Error>;

    /// Ends notifications of the account, of which whoever sent them is told.
    fn end_notifications(
        &mut self,
        account: AccountId,
        now: UnixMs,
        max: usize,
    ) -> Result<usize, Self::Error>;

    /// Ends subscriptions between the account and others on both sides; also what changed in the rosters of others.
    fn end_subscriptions(
        &mut self,
        account: AccountId,
        jid: &BareJid,
        max: usize,
    ) -> Result<(usize, Vec<RosterChange>), Self::Error>;

    /// Forgets the collapse keys of its notifications; what became of these stays known for its time.
    fn forget_collapse_keys(&mut self, gone: &Gone<'_>, max: usize) -> Result<usize, Self::Error>;

    /// Removes its affiliations to topics: the next account of this name must not have them. Bans stay, or deleting the account would lift
    /// them.
    fn leave_topics(&mut self, jid: &BareJid, max: usize) -> Result<usize, Self::Error>;

    /// Removes its memberships of rooms in the same way. `told_at`: when followers of the rooms' events are told, if they are.
    fn leave_rooms(
        &mut self,
        jid: &BareJid,
        told_at: Option<UnixMs>,
        max: usize,
    ) -> Result<usize, Self::Error>;

    /// Removes items of a topic.
    fn purge(&mut self, topic: TopicId, max: usize) -> Result<usize, Self::Error>;

    /// Ends subscriptions to a topic.
    fn unfollow(&mut self, topic: TopicId, max: usize) -> Result<usize, Self::Error>;

    /// Lists a domain, or an account of it, as one of which a part is left: its removal is finished even if the process that began it ends.
    /// Nobody logs in to such an account.
    fn note_unfinished(
        &mut self,
        domain: DomainId,
        account: Option<AccountId>,
        now: UnixMs,
    ) -> Result<(), Self::Error>;
}

/// An account that is being removed.
pub(crate) struct Gone<'a> {
    pub(crate) account: AccountId,
    pub(crate) domain: DomainId,
    pub(crate) local: &'a str,
    pub(crate) domain_name: &'a str,
    pub(crate) now: UnixMs,
    /// Whether its domain goes along: then nobody is told what becomes of its notifications and memberships.
    pub(crate) with_domain: bool,
}

/// Rows that may be changed, and those that were, about.
struct Budget {
    max: usize,
    spent: usize,
}

impl Budget {
    /// How many steps of `rows` rows each fit; at least one, while anything is left.
    fn steps(&self, rows: usize) -> usize {
        self.max.saturating_sub(self.spent).div_ceil(rows)
    }

    fn is_spent(&self) -> bool {
        self.spent >= self.max
    }
}

/// Rows that change where a notification ends: its own, its trace, and an event.
const ROWS_OF_END: usize = 3;
/// The same of a subscription between accounts: two on the other side, and one on this.
const ROWS_OF_CONTACT: usize = 3;
/// The same of a membership: the member's, and an event's.
const ROWS_OF_LEAVING: usize = 2;
/// The same of a subscription to a topic: its own, and its account's.
const ROWS_OF_FOLLOWER: usize = 2;

/// Removes a part of an account that is there: all of it, or as many rows as there may be at once. Of one that is left in part nobody logs in. The answer is
/// what changed in the rosters of others.
pub(crate) fn account<R: Removes>(
    write: &mut R,
    gone: &Gone<'_>,
    rows_max: usize,
) -> Result<Part<RosterChange>, R::Error> {
    account_within(write, gone, &mut Budget { max: rows_max, spent: 0 })
}

fn account_within<R: Removes>(
    write: &mut R,
    gone: &Gone<'_>,
    budget: &mut Budget,
) -> Result<Part<RosterChange>, R::Error> {
    let mut entries = Vec::new();
    let more = !part_of_account(write, gone, budget, &mut entries)?;
    if more {
        write.note_unfinished(gone.domain, Some(gone.account), gone.now)?;
    }
    Ok(Part { entries, more })
}

/// Whether that was the last part.
fn part_of_account<R: Removes>(
    write: &mut R,
    gone: &Gone<'_>,
    budget: &mut Budget,
    changes: &mut Vec<RosterChange>,
) -> Result<bool, R::Error> {
    let id = gone.account;
    let told_at = (!gone.with_domain).then_some(gone.now);
    if let Some(now) = told_at {
        budget.spent += ROWS_OF_END * write.end_notifications(id, now, budget.steps(ROWS_OF_END))?;
    }
    let jid = BareJid::from_parts(Some(gone.local), gone.domain_name).ok();
    if let Some(jid) = &jid {
        let (contacts, mut changed) = write.end_subscriptions(id, jid, budget.steps(ROWS_OF_CONTACT))?;
        budget.spent += ROWS_OF_CONTACT * contacts;
        changes.append(&mut changed);
    }
    budget.spent += write.forget_collapse_keys(gone, budget.steps(1))?;
    if !rows_within(write, OF_ACCOUNT, id.0.cast_signed(), budget)? {
        return Ok(false);
    }
    if let Some(jid) = &jid {
        budget.spent += write.leave_topics(jid, budget.steps(1))?;
        let rooms = budget.steps(ROWS_OF_LEAVING);
        budget.spent += ROWS_OF_LEAVING * write.leave_rooms(jid, told_at, rooms)?;
    }
    if budget.is_spent() {
        return Ok(false);
    }
    write.delete(&ACCOUNT_UNFINISHED, id.0.cast_signed(), 1)?;
    budget.spent += write.delete(&ACCOUNT, id.0.cast_signed(), 1)?;
    Ok(true)
}

/// Deletes rows of tables, one after the other; whether none of them are left.
fn rows_within<R: Removes>(
    write: &mut R,
    tables: &[Rows],
    of: i64,
    budget: &mut Budget,
) -> Result<bool, R::Error> {
    for rows in tables {
        budget.spent += write.delete(rows, of, budget.steps(1))?;
        if budget.is_spent() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes a part of a topic that is there; whether there is more of it.
pub(crate) fn topic<R: Removes>(write: &mut R, topic: TopicId, rows_max: usize) -> Result<bool, R::Error> {
    topic_within(write, topic, &mut Budget { max: rows_max, spent: 0 }).map(|is_gone| !is_gone)
}

/// The same of a room.
pub(crate) fn room<R: Removes>(write: &mut R, room: RoomId, rows_max: usize) -> Result<bool, R::Error> {
    room_within(write, room, &mut Budget { max: rows_max, spent: 0 }).map(|is_gone| !is_gone)
}

/// Removes a part of a topic; whether that was the last.
fn topic_within<R: Removes>(write: &mut R, topic: TopicId, budget: &mut Budget) -> Result<bool, R::Error> {
    budget.spent += write.purge(topic, budget.steps(1))?;
    budget.spent += ROWS_OF_FOLLOWER * write.unfollow(topic, budget.steps(ROWS_OF_FOLLOWER))?;
    whole_within(write, &OF_TOPIC, topic.0.into(), budget)
}

/// The same of a room.
fn room_within<R: Removes>(write: &mut R, room: RoomId, budget: &mut Budget) -> Result<bool, R::Error> {
    whole_within(write, &OF_ROOM, room.0.into(), budget)
}

fn whole_within<R: Removes>(
    write: &mut R,
    whole: &Whole,
    of: i64,
    budget: &mut Budget,
) -> Result<bool, R::Error> {
    if !rows_within(write, whole.rest, of, budget)? {
        return Ok(false);
    }
    // As many as in a part of their own: usually all of them.
    let owners = write.delete(&whole.owners, of, budget.max)?;
    budget.spent += owners;
    if owners == budget.max {
        return Ok(false);
    }
    budget.spent += write.delete(&whole.itself, of, 1)?;
    Ok(true)
}

/// A domain that is being removed.
pub(crate) struct GoneDomain<'a> {
    pub(crate) domain: DomainId,
    pub(crate) name: &'a str,
    pub(crate) now: UnixMs,
}

/// Removes a part of a domain that is there: of its accounts, its topics, its rooms, and what else it has. The answer is what changed in the rosters of accounts
/// of other domains.
pub(crate) fn domain<R: Removes>(
    write: &mut R,
    gone: &GoneDomain<'_>,
    rows_max: usize,
) -> Result<Part<RosterChange>, R::Error> {
    let mut entries = Vec::new();
    let budget = &mut Budget { max: rows_max, spent: 0 };
    let more = !part_of_domain(write, gone, budget, &mut entries)?;
    if more {
        write.note_unfinished(gone.domain, None, gone.now)?;
    }
    Ok(Part { entries, more })
}

/// Whether that was the last part.
fn part_of_domain<R: Removes>(
    write: &mut R,
    gone: &GoneDomain<'_>,
    budget: &mut Budget,
    changes: &mut Vec<RosterChange>,
) -> Result<bool, R::Error> {
    let GoneDomain { domain, name, now } = *gone;
    while let Some((id, local)) = write.first(FIRST_ACCOUNT, domain)? {
        if budget.is_spent() {
            return Ok(false);
        }
        let account = AccountId(id);
        let gone = Gone { account, domain, local: &local, domain_name: name, now, with_domain: true };
        let Part { entries, .. } = account_within(write, &gone, budget)?;
        // Who goes along need not be told.
        changes.extend(entries.into_iter().filter(|change| change.account.domain() != name));
    }
    while let Some((id, _)) = write.first(FIRST_TOPIC, domain)? {
        if budget.is_spent() || !topic_within(write, TopicId(id as u32), budget)? {
            return Ok(false);
        }
    }
    while let Some((id, _)) = write.first(FIRST_ROOM, domain)? {
        if budget.is_spent() || !room_within(write, RoomId(id as u32), budget)? {
            return Ok(false);
        }
    }
    let id = i64::from(domain.0);
    if !rows_within(write, OF_DOMAIN, id, budget)? {
        return Ok(false);
    }
    for rows in DOMAIN {
        write.delete(rows, id, 1)?;
    }
    Ok(true)
}

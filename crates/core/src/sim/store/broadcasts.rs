//! Broadcasts, and which accounts have acknowledged them.

use super::{Committed, answers, page};
use crate::model::{
    self, AccountId, BroadcastEnd, BroadcastProgress, BroadcastReport, BroadcastState, DomainId,
    NotificationId, UnixMs,
};
use crate::ports::Part;
use crate::ports::store::broadcasts::{
    Broadcast, BroadcastEndOf, Broadcasts, ChangeBroadcast, ChangeBroadcastAnswer, ChangedBroadcasts,
    CountAccounts, CreateBroadcast, CreateBroadcastAnswer, EndBroadcasts, EndedBroadcasts,
};
use std::collections::BTreeMap;

answers! {
    Broadcast => find;
    Broadcasts => list;
    ChangedBroadcasts => changed;
    EndedBroadcasts => ended;
    BroadcastEndOf => end_of;
    CountAccounts => count;
    CreateBroadcast => create;
    ChangeBroadcast => change;
    EndBroadcasts => end;
}

/// Broadcasts.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    broadcasts: BTreeMap<NotificationId, model::Broadcast>,
    ends: BTreeMap<(NotificationId, AccountId), BroadcastEnd>,
    given: BTreeMap<(NotificationId, u64), u64>,
    /// How many accounts have acknowledged each, those that are gone among them.
    acknowledged: BTreeMap<NotificationId, u64>,
    /// The revision of the last change.
    revision: u64,
}

impl Table {
    fn report(&self, broadcast: &model::Broadcast) -> BroadcastReport {
        let of = |id: &NotificationId| *id == broadcast.id;
        let given = self.given.iter().filter(|((id, _), _)| of(id)).map(|(_, given)| given).sum();
        let acknowledged = self.acknowledged.get(&broadcast.id).copied().unwrap_or(0);
        BroadcastReport { broadcast: broadcast.clone(), progress: BroadcastProgress { given, acknowledged } }
    }

    fn put(&mut self, broadcast: &model::Broadcast) -> model::Broadcast {
        self.revision += 1;
        let broadcast = model::Broadcast { revision: self.revision, ..broadcast.clone() };
        self.broadcasts.insert(broadcast.id, broadcast.clone());
        broadcast
    }

    /// Forgets what an account acknowledged.
    pub(super) fn forget_account(&mut self, account: AccountId) {
        self.ends.retain(|(_, of), _| *of != account);
    }

    /// Forgets the broadcasts of a domain.
    pub(super) fn forget_domain(&mut self, domain: DomainId) {
        let theirs: Vec<_> =
            self.broadcasts.values().filter(|it| it.domain == domain).map(|it| it.id).collect();
        self.forget(&theirs);
    }

    fn forget(&mut self, gone: &[NotificationId]) {
        for id in gone {
            self.broadcasts.remove(id);
            self.acknowledged.remove(id);
            self.ends.retain(|(of, _), _| of != id);
            self.given.retain(|(of, _), _| of != id);
        }
    }

    /// Ends those whose time is over, removes what accounts acknowledged of those that have ended, and forgets those that ended before `forget`: at
    /// most `max` of each. Returns whether there is more of that.
    pub(super) fn sweep(&mut self, now: UnixMs, forget: UnixMs, max: usize) -> bool {
        for broadcast in self.over(now, max) {
            let state = BroadcastState::Finished;
            self.put(&model::Broadcast { state, ended: Some(broadcast.expires), ..broadcast });
        }
        for pair in self.past_ends(max) {
            self.ends.remove(&pair);
        }
        self.forget(&self.old(forget, max));
        !self.over(now, 1).is_empty() || !self.past_ends(1).is_empty() || !self.old(forget, 1).is_empty()
    }

    fn over(&self, now: UnixMs, max: usize) -> Vec<model::Broadcast> {
        let is_over = |it: &&model::Broadcast| it.is_open() && it.expires <= now;
        self.broadcasts.values().filter(is_over).take(max).cloned().collect()
    }

    fn past_ends(&self, max: usize) -> Vec<(NotificationId, AccountId)> {
        let has_ended = |(id, _): &&(NotificationId, AccountId)| !self.is_open(*id);
        self.ends.keys().filter(has_ended).take(max).copied().collect()
    }

    fn old(&self, forget: UnixMs, max: usize) -> Vec<NotificationId> {
        let has_ends =
            |id: NotificationId| self.ends.range((id, AccountId(0))..).any(|((of, _), _)| *of == id);
        let old = self.broadcasts.values().filter(|it| it.ended.is_some_and(|ended| ended < forget));
        old.map(|it| it.id).filter(|id| !has_ends(*id)).take(max).collect()
    }

    fn is_open(&self, id: NotificationId) -> bool {
        self.broadcasts.get(&id).is_some_and(model::Broadcast::is_open)
    }
}

fn of(store: &Committed, domain: DomainId, id: NotificationId) -> Option<&model::Broadcast> {
    store.own.broadcasts.broadcasts.get(&id).filter(|broadcast| broadcast.domain == domain)
}

fn find(store: &Committed, asked: &Broadcast) -> Option<Box<BroadcastReport>> {
    of(store, asked.domain, asked.id).map(|broadcast| Box::new(store.own.broadcasts.report(broadcast)))
}

fn list(store: &Committed, asked: &Broadcasts) -> Vec<BroadcastReport> {
    let table = &store.own.broadcasts;
    let before = table.broadcasts.range(..asked.before).rev().map(|(_, broadcast)| broadcast);
    let theirs = before.filter(|broadcast| broadcast.domain == asked.domain);
    theirs.take(asked.limit.into()).map(|broadcast| table.report(broadcast)).collect()
}

fn changed(store: &Committed, asked: &ChangedBroadcasts) -> Part<model::Broadcast> {
    let all = store.own.broadcasts.broadcasts.values();
    let mut found: Vec<_> = all
        .filter(|broadcast| broadcast.revision > asked.after && (!asked.only_open || broadcast.is_open()))
        .collect();
    found.sort_by_key(|broadcast| broadcast.revision);
    page::first(found.into_iter().map(|one| (one.payload.bytes(), one.clone())), asked.page)
}

fn ended(store: &Committed, asked: &EndedBroadcasts) -> Vec<(NotificationId, AccountId)> {
    let pairs = asked.broadcasts.iter().flat_map(|id| asked.accounts.iter().map(move |of| (*id, *of)));
    pairs.filter(|pair| store.own.broadcasts.ends.contains_key(pair)).collect()
}

fn end_of(store: &Committed, asked: &BroadcastEndOf) -> Option<BroadcastEnd> {
    store.own.broadcasts.ends.get(&(asked.id, asked.account)).copied()
}

fn count(store: &Committed, asked: &CountAccounts) -> u64 {
    store.accounts.values().filter(|account| account.domain == asked.domain).count() as u64
}

fn create(store: &mut Committed, asked: &CreateBroadcast) -> CreateBroadcastAnswer {
    let CreateBroadcast { broadcast, bounds } = asked;
    if !store.domains.contains_key(&broadcast.domain) {
        return CreateBroadcastAnswer::NoDomain;
    }
    let table = &mut store.own.broadcasts;
    if let Some(known) = table.broadcasts.get(&broadcast.id) {
        return CreateBroadcastAnswer::Created(Box::new(known.clone()));
    }
    let all = table.broadcasts.values();
    let open: Vec<_> = all.filter(|it| it.domain == broadcast.domain && it.is_open()).collect();
    if open.len() >= bounds.open as usize {
        return CreateBroadcastAnswer::TooMany;
    }
    let bytes: usize = open.iter().map(|it| it.bytes()).sum();
    if (bytes + broadcast.bytes()) as u64 > bounds.bytes {
        return CreateBroadcastAnswer::Full;
    }
    CreateBroadcastAnswer::Created(Box::new(table.put(broadcast)))
}

fn change(store: &mut Committed, asked: &ChangeBroadcast) -> ChangeBroadcastAnswer {
    let ChangeBroadcast { domain, id, change, now } = asked;
    let Some(known) = of(store, *domain, *id).cloned() else { return ChangeBroadcastAnswer::Missing };
    let table = &mut store.own.broadcasts;
    if !known.is_open() {
        let report = Box::new(table.report(&known));
        return match change.is_done(&known) {
            true => ChangeBroadcastAnswer::Changed(report),
            false => ChangeBroadcastAnswer::Ended(report),
        };
    }
    let changed = match change.apply(&known, *now) {
        Some(changed) => table.put(&changed),
        None => known,
    };
    ChangeBroadcastAnswer::Changed(Box::new(table.report(&changed)))
}

fn end(store: &mut Committed, asked: &EndBroadcasts) {
    for end in &asked.ends {
        let has_account = store.accounts.contains_key(&end.account);
        let table = &mut store.own.broadcasts;
        let pair = (end.id, end.account);
        if has_account && table.is_open(end.id) && !table.ends.contains_key(&pair) {
            table.ends.insert(pair, BroadcastEnd { at: end.at, by: end.by });
            *table.acknowledged.entry(end.id).or_default() += 1;
        }
    }
    let table = &mut store.own.broadcasts;
    for given in &asked.given {
        if table.broadcasts.contains_key(&given.id) {
            let so_far = table.given.entry((given.id, given.counter)).or_default();
            *so_far = given.given.max(*so_far);
        }
    }
}

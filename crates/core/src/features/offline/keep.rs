//! Messages that were given to parked sessions only, or to such as leave the process: the store keeps them, so that their senders need
//! not wait for the clients. The sessions have them in their queues, too; whoever acknowledges one there has it deleted here.

use super::{TRACKED, arrival, forget, look_again, question, xml};
use crate::feature_state::offline::GivenMessage;
use crate::model::Settlement;
use crate::ports::store::offline::{Offline, StoreOfflineAnswer};
use crate::ports::{Fault, Page};
use crate::route;
use crate::session::hook::KeepHandler;
use crate::session::{Cx, Sessions};
use crate::shard::{Chat, Fate, Forget, Keep, Recipients, RefusedWrite, TURN_BYTES_MAX};
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

pub(super) const HANDLER: KeepHandler = KeepHandler { kind: TRACKED, keeps: xml::is_worth_keeping, keep };

fn keep(message: &Stanza, recipients: Arc<Recipients>, settlement: Option<Settlement>, cx: &mut Cx<'_>) {
    // As for an absent account, it may be lost.
    if !xml::is_worth_keeping(message) {
        return cx.settle(settlement);
    }
    let Some(account) = message.to.as_ref().map(carillon_wire::jid::Jid::bare) else { return };
    let Some(question) = question(message, &account, false, cx) else { return };
    recipients.decide(Fate::Asked);
    cx.features.offline.begin_keeping(account.as_str());
    let message = message.clone();
    store(Box::new(Keep { message, account, question, recipients, settlement, is_unsure: false }), cx);
}

/// Goes on with one that the store refused.
pub(super) fn again(keep: Box<Keep>, cx: &mut Cx<'_>) {
    if keep.is_unsure { look(keep, 0, cx) } else { store(keep, cx) }
}

fn store(mut keep: Box<Keep>, cx: &mut Cx<'_>) {
    cx.ask(keep.question.clone(), move |answer, sessions, cx| match answer {
        Ok(StoreOfflineAnswer::Stored(seq)) => stored(&keep, seq, sessions, cx),
        Ok(StoreOfflineAnswer::Full | StoreOfflineAnswer::NoAccount) => refused(&keep, sessions, cx),
        Err(fault) => {
            keep.is_unsure = fault == Fault::Unknown;
            cx.retry(RefusedWrite::Keep(keep));
        }
    });
}

/// The store may have it: looks among the account's messages.
fn look(mut keep: Box<Keep>, after: u64, cx: &mut Cx<'_>) {
    let page = Page { entries: PAGE, bytes: TURN_BYTES_MAX };
    let (domain, local) = (keep.question.domain, keep.question.local.clone());
    cx.ask(Offline { domain, local, after, page }, move |answer, sessions, cx| {
        let Ok(page) = answer else {
            return cx.retry(RefusedWrite::Keep(keep));
        };
        let asked = &keep.question;
        let is_it = |stored: &&crate::model::OfflineMessage| {
            stored.received == asked.received && stored.stanza == asked.stanza
        };
        match (page.entries.iter().find(is_it), page.entries.last()) {
            (Some(found), _) => stored(&keep, found.seq, sessions, cx),
            (None, Some(last)) if page.more => look(keep, last.seq, cx),
            (None, _) => {
                keep.is_unsure = false;
                store(keep, cx);
            }
        }
    });
}

/// The store has it.
fn stored(keep: &Keep, seq: u64, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.shard.retries.succeeded(cx.now.mono);
    cx.features.offline.stop_keeping(keep.account.as_str());
    cx.shard.accounts.changed(keep.account.as_str());
    if keep.recipients.decide(Fate::Stored(seq)) == Fate::Settled {
        let (domain, local) = (keep.question.domain, keep.question.local.clone());
        forget(Forget { domain, local, seqs: vec![seq] }, None, cx);
    }
    let mut is_theirs = false;
    for id in keep.recipients.all() {
        let Some(session) = sessions.bound(id) else { continue };
        let progress = session.state.offline.progress();
        let before = progress.live.bytes();
        let managed = progress.live.take_of(&keep.recipients).is_none();
        arrival::resized(id, before, progress.live.bytes(), cx);
        if managed && !session.is_managed() {
            // It has arrived.
            session.state.offline.tidy();
            continue;
        }
        // They are not given it a second time, by a page.
        let sent = session.sent();
        session.state.offline.progress().pager.gave(GivenMessage { seq, managed }, sent);
        arrival::look_later(session, cx);
        is_theirs = true;
    }
    cx.settle(keep.settlement);
    look_again(&keep.account, !is_theirs, sessions, cx);
}

/// The store does not take it. It stays with its sessions; if they have ended, it goes another way.
fn refused(keep: &Keep, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.features.offline.stop_keeping(keep.account.as_str());
    if keep.recipients.fate() == Fate::Asked {
        keep.recipients.decide(Fate::Theirs);
        if keep.recipients.all().all(|id| sessions.bound(id).is_none()) {
            let chat = Chat { recipients: Some(keep.recipients.clone()), settlement: keep.settlement };
            route::unacknowledged(&keep.message, chat, sessions, cx);
        }
    }
    look_again(&keep.account, false, sessions, cx);
}

/// Messages that are read at once.
const PAGE: u16 = 100;

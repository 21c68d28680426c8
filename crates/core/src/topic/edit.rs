//! Edits: operations that change a topic itself or remove items. Each holds the topic exclusively from its first question to
//! the store's last answer.

use super::home::Home;
use super::rights;
use super::step::{Edit, Editing, Step, done, found};
use crate::command::{Asker, Refusal, TopicOutcome};
use crate::message::ShardMessage;
use crate::model::{
    Access, Affiliation, Change, Item, PubsubEvent, Retained, Revision, TopicConfig, TopicId, TopicKey,
    TopicRecord,
};
use crate::ports::store::items::{Items, PURGED_MAX, Purge, Retract};
use crate::ports::store::topics::{ConfigureTopic, SetAffiliations};
use crate::ports::{Answer, Ask, Fault, Question};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

impl Home {
    /// Begins an edit. Where it may change what the topic gives at login, the last items are read first: a login may have
    /// read them too, and the shards must be told which items are outdated.
    pub(super) fn edit(
        &mut self,
        record: &Arc<TopicRecord>,
        edit: Edit,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let at_login = record.config.is_given_at_login();
        let matters = match &edit {
            Edit::Retract { .. } | Edit::Purge => at_login,
            Edit::Configure(config) => changes_logins(&record.config, config),
            Edit::Affiliate(_) => false,
        };
        self.hold();
        let editing = Editing { record: record.clone(), edit, newest: Vec::new(), asker };
        if matters {
            self.ask(key, Items::newest(record.id, 2), Step::Look(editing), cx);
        } else {
            self.carry_out(editing, key, cx);
        }
    }

    /// The newest items were read.
    pub(super) fn looked(&mut self, mut editing: Editing, answer: Answer, key: &TopicKey, cx: &mut Cx<'_>) {
        match found(Items::answer(answer)) {
            Ok(newest) => {
                editing.newest = newest;
                self.carry_out(editing, key, cx);
            }
            Err(refusal) => {
                self.open(editing.record);
                editing.asker.answer(&key.name, Err(refusal), cx);
            }
        }
    }

    /// The store's answer to an edit.
    pub(super) fn edited(&mut self, editing: Editing, answer: Answer, key: &TopicKey, cx: &mut Cx<'_>) {
        let is_done = editing.edit.is_done(answer);
        if is_done == Ok(false) {
            return self.carry_out(editing, key, cx);
        }
        let Editing { record, edit, newest, asker } = editing;
        if let Err(refusal) = is_done {
            // What is missing is the item, or else the topic.
            match (&edit, refusal) {
                (_, Refusal::Fault(Fault::Unknown)) => self.read_record(key, cx),
                (Edit::Configure(_) | Edit::Affiliate(_), Refusal::NotFound) => self.vanish(),
                _ => self.open(record),
            }
            return asker.answer(&key.name, Err(refusal), cx);
        }
        // The asker hears of it before its own session is told as a follower.
        match edit {
            Edit::Retract { item, notify } => {
                asker.answer(&key.name, Ok(TopicOutcome::Done), cx);
                self.retracted(&record, &item, notify, &newest, cx);
                self.open(record);
            }
            Edit::Purge => {
                asker.answer(&key.name, Ok(TopicOutcome::Done), cx);
                self.purged(&record, &newest, cx);
                self.open(record);
            }
            Edit::Configure(config) => {
                let after = Arc::new(TopicRecord { config, ..(*record).clone() });
                let outcome = TopicOutcome::Record { record: after.clone(), created: false };
                asker.answer(&key.name, Ok(outcome), cx);
                self.configured(&record, &after, &newest, cx);
                self.open(after);
            }
            Edit::Affiliate(changes) => {
                asker.answer(&key.name, Ok(TopicOutcome::Done), cx);
                self.affiliated(&record, &changes, key, cx);
            }
        }
    }

    fn retracted(
        &self,
        record: &TopicRecord,
        item: &str,
        notify: Option<bool>,
        newest: &[Arc<Item>],
        cx: &mut Cx<'_>,
    ) {
        let told = notify.unwrap_or(record.config.notify_retract);
        let event = Change::Retracted { item, told };
        match newest {
            // It was the last: the one before takes its place.
            [last, before @ ..] if *last.id == *item => {
                self.tell_change(
                    record,
                    event,
                    last.revision,
                    self.retained(before.first(), &record.config),
                    cx,
                );
            }
            _ if told => self.tell_change(record, event, Revision::default(), Retained::Unchanged, cx),
            _ => {}
        }
    }

    fn purged(&self, record: &TopicRecord, newest: &[Arc<Item>], cx: &mut Cx<'_>) {
        let at_login = record.config.is_given_at_login();
        let retained = if at_login { Retained::Nothing } else { Retained::Unchanged };
        // XEP-0060 §8.5.2: followers are told if they would be of each item.
        let event = if record.config.notify_retract { Change::Purged } else { Change::Silent };
        self.tell_change(record, event, known(newest), retained, cx);
    }

    fn configured(&self, record: &TopicRecord, after: &TopicRecord, newest: &[Arc<Item>], cx: &mut Cx<'_>) {
        let at_login = after.config.is_given_at_login();
        if changes_logins(&record.config, &after.config) {
            let last = newest.first().filter(|_| at_login);
            self.tell_change(after, Change::Silent, known(newest), self.retained(last, &after.config), cx);
        }
        if (record.config.access_model, after.config.access_model) == (Access::Open, Access::Whitelist) {
            cx.post_all(|| ShardMessage::Restricted { topic: after.id });
        }
    }

    /// Affiliations changed: accounts that may not read the topic any more are unsubscribed (XEP-0060 §8.9.2.1).
    fn affiliated(
        &mut self,
        record: &TopicRecord,
        changes: &[(BareJid, Affiliation)],
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let affiliations = rights::affiliations_after(record, changes);
        let record = Arc::new(TopicRecord { affiliations, ..record.clone() });
        self.open(record.clone());
        for (account, _) in changes {
            if rights::readable(account, &record).is_err() {
                self.unsubscribe(&record, account.clone(), None, key, cx);
            }
        }
    }

    fn carry_out(&mut self, editing: Editing, key: &TopicKey, cx: &mut Cx<'_>) {
        let question = editing.edit.question(editing.record.id);
        self.ask(key, question, Step::Edit(editing), cx);
    }

    fn retained(&self, last: Option<&Arc<Item>>, config: &TopicConfig) -> Retained {
        last.map_or(Retained::Nothing, |item| {
            Retained::Last(Arc::new(PubsubEvent::last_item(&item.shown(config), &self.state.domain, true)))
        })
    }
}

/// Whether another configuration changes what logins are given.
fn changes_logins(before: &TopicConfig, after: &TopicConfig) -> bool {
    let given = |config: &TopicConfig| config.is_given_at_login().then_some(config.deliver_payloads);
    given(before) != given(after)
}

impl Edit {
    /// The question to the store for an edit.
    fn question(&self, topic: TopicId) -> Ask {
        match self {
            Edit::Retract { item, .. } => Retract { topic, item: item.clone() }.into(),
            Edit::Purge => Purge { topic, items_max: PURGED_MAX }.into(),
            Edit::Configure(config) => {
                ConfigureTopic { topic, config: config.clone(), items_max: PURGED_MAX }.into()
            }
            Edit::Affiliate(changes) => SetAffiliations { topic, changes: changes.clone() }.into(),
        }
    }

    /// The result of an edit, from the store's answer: whether it is done, or a part of it is.
    fn is_done(&self, answer: Answer) -> Result<bool, Refusal> {
        match self {
            Edit::Retract { .. } => done(Retract::answer(answer)),
            Edit::Purge => return Ok(!Purge::answer(answer)?),
            Edit::Configure(_) => return Ok(!ConfigureTopic::answer(answer)??),
            Edit::Affiliate(_) => done(SetAffiliations::answer(answer)),
        }
        .map(|()| true)
    }
}

/// The highest revision among a topic's items.
fn known(newest: &[Arc<Item>]) -> Revision {
    newest.first().map_or(Revision::default(), |item| item.revision)
}

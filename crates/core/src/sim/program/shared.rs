//! What accounts publish on their own nodes: who may know of it does in the end.

use super::{ACCOUNTS, Connected, Program, holds};
use crate::model::{ItemsFrom, NodeEdit};
use crate::ports::store::nodes::{EditNode, NodeItems};
use crate::ports::{Answer, Ask, Question};
use crate::sim::client::HASH;
use std::collections::BTreeMap;

/// What is known of it.
#[derive(Default)]
pub(super) struct Shared {
    /// How many items were published.
    published: u64,
    /// The item of each account that was committed last.
    newest: BTreeMap<String, u64>,
}

/// What happens.
impl Program {
    /// A client publishes something.
    pub(super) fn shares(&mut self, whose: usize) {
        self.shared.published += 1;
        let number = self.shared.published;
        let id = format!("S{number}");
        let item = format!("<item id='current'><v xmlns='urn:v' n='{number}'/></item>");
        let publish = format!("<publish node='m'>{item}</publish>");
        let request = format!(
            "<iq type='set' id='{id}'><pubsub xmlns='http://jabber.org/protocol/pubsub'>{publish}</pubsub></iq>"
        );
        self.says(whose, |client| {
            client.requests.push(id);
            client.stanza(&request)
        });
    }

    /// What a client's presence carries: those of one account have a hash of something else, so that each is asked.
    pub(super) fn wants(&self, whose: usize) -> String {
        let is_forged = self.clients.get(whose).is_some_and(|client| client.is_of(ACCOUNTS[2]));
        let hash = if is_forged { "forged" } else { HASH };
        format!("<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='n' ver='{hash}'/>")
    }
}

/// What must hold.
impl Program {
    /// Notes what was committed.
    pub(super) fn note_shared(&mut self, ask: &Ask, answer: &Answer) {
        if let Some(EditNode { local, edit: NodeEdit::Publish { payload, .. }, .. }) = EditNode::of(ask)
            && let Ok(Ok(_)) = EditNode::answer(answer.clone())
        {
            self.shared.newest.insert(local.to_string(), number(payload));
        }
    }

    /// In the end the store has what was committed last, and every client that is there was told that last of its own account and of all
    /// whose presence it is given.
    pub(super) fn check_shared(&mut self) -> Result<(), String> {
        let domain = self.world.domain_id(super::DOMAIN);
        for (account, newest) in &self.shared.newest {
            let (local, ids, from) = (account.as_str().into(), Vec::new(), ItemsFrom::Newest);
            let question = NodeItems { domain, local, node: "m".into(), ids, from, max: 1, bytes_max: 1000 };
            let kept =
                self.world.ask(question).and_then(|items| items.first().map(|item| number(&item.payload)));
            holds(kept == Some(*newest), || format!("{account} has {kept:?}, and not {newest}"))?;
        }
        let rosters: BTreeMap<_, _> = ACCOUNTS.map(|account| (account, self.roster(account))).into();
        let there = self.clients.iter().filter(|client| self.is_available(client));
        let there = there.filter_map(Connected::xmpp);
        for client in there.filter(|_| self.mix.recipe().wants_to_know) {
            let roster = &rosters[&*client.account];
            let may_know = |other: &str| {
                other == client.account || roster.get(other).is_some_and(|contact| contact.standing.to)
            };
            for (other, newest) in self.shared.newest.iter().filter(|(other, _)| may_know(other)) {
                let told = client.contacts.told.get(super::actions::jid(other).as_str());
                holds(told == Some(newest), || {
                    format!(
                        "{} ({:?}) was told {told:?} by {other}, and not {newest}",
                        client.account, client.jid
                    )
                })?;
            }
        }
        Ok(())
    }
}

/// The number that an item has.
fn number(payload: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(payload);
    let number = text.split_once("n='").and_then(|(_, rest)| rest.split('\'').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

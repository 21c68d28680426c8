//! What is for accounts goes on to where they are at home.

use crate::Effect;
use crate::command::Outcome;
use crate::machine::Turn;
use crate::message::{
    AccountMessage, Addressees, AdoptionMessage, ClaimMessage, Orphans, RoomAudience, RoomEvent, RoomOp,
    ShardMessage,
};
use crate::model::{NodeId, Place, RoomKind};
use crate::shard::{AwaitsHome, Whereabouts, Why};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition as StanzaCondition, StanzaError};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Turn<'_> {
    /// Passes a message for one account on to where it is at home, or has it wait; it comes back if that is here.
    pub(in crate::machine) fn pass_on(
        &mut self,
        account: &BareJid,
        message: ShardMessage,
    ) -> Option<ShardMessage> {
        match self.for_account(account.as_str()) {
            Whereabouts::Here => return Some(message),
            Whereabouts::At(node) => {
                if self.seeks(account, node) {
                    self.have_wait(account, message);
                } else {
                    let place = self.place_on(self.way_to(account, node), account.as_str());
                    self.cx.post(place, message);
                }
            }
            Whereabouts::Unknown => self.have_wait(account, message),
        }
        None
    }

    /// Whether sessions that a node left would go to it, as this one does not know yet that it is dead.
    pub(in crate::machine) fn leads_to_the_dead(&self, message: &AdoptionMessage) -> bool {
        let AdoptionMessage::Left(Orphans { account, of, .. }) = message else { return false };
        let leads = |node| node == *of || self.way_to(account, node) == *of;
        matches!(self.whereabouts(account.as_str()), Whereabouts::At(node) if leads(node))
    }

    /// The node by which an account is sent something that is at home on `node`, or kept there.
    pub(super) fn way_to(&self, account: &BareJid, node: NodeId) -> NodeId {
        match node == self.own() {
            true => node,
            false => self.cx.shard.claims.way(account.as_str()).unwrap_or(node),
        }
    }

    /// Asks where an account is at home that another node keeps, if it is sent something often and that was not asked lately.
    fn seeks(&mut self, account: &BareJid, keeper: NodeId) -> bool {
        let now = self.cx.now.mono;
        let is_kept_elsewhere = keeper != self.own() && self.keeper(account.as_str()) == keeper;
        if !is_kept_elsewhere || !self.cx.shard.claims.is_to_be_sought(account, now) {
            return false;
        }
        let place = self.place_on(self.way_to(account, keeper), account.as_str());
        self.begin(account, Why::Seeking);
        let asker = self.cx.shard.place;
        let message = ClaimMessage::Where { account: account.clone(), asker };
        self.cx.post(place, ShardMessage::Claim(Box::new(message)));
        true
    }

    pub(super) fn have_wait(&mut self, account: &BareJid, message: ShardMessage) {
        if self.cx.shard.claims.moving(account.as_str()).is_none() {
            self.begin(account, Why::Gathering);
        }
        if let Err(AwaitsHome::Message(refused)) =
            self.cx.shard.claims.wait(account.as_str(), AwaitsHome::Message(Box::new(message)))
        {
            self.refuse(*refused);
        }
    }

    /// Too much waits for an account of which it is not known where it is at home.
    pub(super) fn refuse(&mut self, message: ShardMessage) {
        match message {
            ShardMessage::Stanza { stanza, settlement } => {
                let text = "too much waits until it is known where the recipient is served; try again later";
                let error = StanzaError::new(StanzaCondition::ResourceConstraint).with_text(text);
                if let Some(reply) = stanza.error_reply(&error) {
                    self.cx.reply_to(settlement, reply);
                }
                self.cx.settle(settlement);
            }
            ShardMessage::Command { reply, .. } => {
                self.cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Unavailable });
            }
            ShardMessage::Claim(claim) => {
                if let ClaimMessage::Command { reply, .. } | ClaimMessage::Find { reply, .. } = *claim {
                    self.cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Unavailable });
                }
            }
            _ => {}
        }
    }

    /// The same for a message to many. Those at home here are left.
    pub(in crate::machine) fn pass_account_message_on(
        &mut self,
        to: Addressees,
        message: &AccountMessage,
    ) -> Addressees {
        let (here, elsewhere, unknown) = self.divide(to);
        for (place, to) in elsewhere {
            self.cx.post(place, ShardMessage::ForAccounts { to, message: message.clone() });
        }
        for account in unknown {
            let to = Addressees::from_iter([account.clone()]);
            self.have_wait(&account, ShardMessage::ForAccounts { to, message: message.clone() });
        }
        here
    }

    /// The same for what a room gives to accounts.
    pub(in crate::machine) fn pass_event_on(&mut self, mut event: Box<RoomEvent>) -> Option<ShardMessage> {
        let RoomAudience::Accounts(accounts) = &event.to else { return Some(ShardMessage::RoomEvent(event)) };
        let (here, elsewhere, unknown) = self.divide(accounts.iter().cloned().collect());
        for (place, to) in elsewhere {
            let mut event = event.clone();
            event.to = RoomAudience::Accounts(Arc::new(to.into_vec()));
            self.cx.post(place, ShardMessage::RoomEvent(event));
        }
        for account in unknown {
            let mut event = event.clone();
            event.to = RoomAudience::Accounts(Arc::new(vec![account.clone()]));
            self.have_wait(&account, ShardMessage::RoomEvent(event));
        }
        if here.is_empty() {
            return None;
        }
        if here.len() < accounts.len() {
            event.to = RoomAudience::Accounts(Arc::new(here.into_vec()));
        }
        Some(ShardMessage::RoomEvent(event))
    }

    /// Those of some accounts that are at home here, the others by where they are, and those of which that is not known.
    pub(super) fn divide(
        &mut self,
        to: Addressees,
    ) -> (Addressees, BTreeMap<Place, Addressees>, Vec<BareJid>) {
        let (mut here, mut elsewhere, mut unknown) = (Addressees::new(), BTreeMap::new(), Vec::new());
        for account in to {
            match self.for_account(account.as_str()) {
                Whereabouts::Here => here.push(account),
                Whereabouts::At(node) => {
                    let place = self.place_on(self.way_to(&account, node), account.as_str());
                    elsewhere.entry(place).or_insert_with(Addressees::new).push(account);
                }
                Whereabouts::Unknown => unknown.push(account),
            }
        }
        (here, elsewhere, unknown)
    }

    /// A room was sent something: its answer goes to where that came from.
    pub(in crate::machine) fn note_sender(&mut self, kind: RoomKind, op: &RoomOp) {
        if self.is_alone() || kind != RoomKind::Muc {
            return;
        }
        if let RoomOp::Stanza { seat, stanza, .. } = op
            && let (Some(room), Some(from)) = (&stanza.to, &stanza.from)
        {
            self.cx.shard.claims.note_sender(room.bare(), from.bare(), seat.place);
        }
    }
}

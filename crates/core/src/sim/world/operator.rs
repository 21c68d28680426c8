//! What operators and providers do: domains, accounts, commands, questions to the store.

use super::World;
use crate::Input;
use crate::command::{Command, Outcome, ReplyTo};
use crate::message::ShardMessage;
use crate::model::{Credentials, DomainId, Domains, Invitation, Policy, TokenHash};
use crate::ports::Question;
use crate::ports::store::accounts::{CreateAccount, CreateAccountAnswer, SetCredentials};
use crate::ports::store::domains::{self, PutDomain};
use crate::ports::store::invitations::{CreateInvitation, CreateInvitationAnswer};
use crate::sasl::scram;
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

impl World {
    /// Asks the store past everything that is under way.
    pub fn ask<Q: Question>(&mut self, question: Q) -> Q::Answer {
        Q::answer(self.disk.answer(&question.into())).expect("the store of a simulation refuses no test")
    }

    /// Makes a domain or changes its policy, and tells the shards.
    pub fn domain(&mut self, name: &str, policy: Policy) -> DomainId {
        let id = self.ask(PutDomain { name: name.into(), policy }).domain.id;
        let domains = Arc::new(Domains::new(self.ask(domains::Domains)));
        self.domains = domains.clone();
        self.every_shard(|| Input::Domains(domains.clone()));
        id
    }

    /// A domain that there is.
    pub fn domain_id(&self, name: &str) -> DomainId {
        self.domains.named(name).unwrap_or_else(|| panic!("no domain {name}")).id
    }

    /// Creates an account with a password, which costs a login `iterations`.
    pub fn account(&mut self, domain: &str, local: &str, password: &str, iterations: u32) {
        let credentials = keys(password, b"0123456789abcdef", iterations);
        let (domain, now) = (self.domain_id(domain), self.now.unix);
        let answer =
            self.ask(CreateAccount { domain, local: local.into(), credentials, is_in_band: false, now });
        assert!(matches!(answer, CreateAccountAnswer::Created(_)), "{answer:?}");
    }

    /// Makes an invitation with this token, which is valid for as long as this one.
    pub fn invite(&mut self, token: &str, like: &Invitation) {
        let now = self.now.unix;
        let answer = self.ask(CreateInvitation {
            domain: like.domain,
            hash: TokenHash::of(token),
            inviter: like.inviter.clone(),
            local: like.local.clone(),
            registers: like.registers,
            uses_max: like.uses_max,
            expires: now.plus(like.expires.0 - like.created.0),
            max: 1000,
            inviter_max: 1000,
            now,
        });
        assert!(matches!(answer, CreateInvitationAnswer::Created(_)), "{answer:?}");
    }

    /// Changes a password as the HTTP API does when the sessions may go on.
    pub fn password(&mut self, domain: &str, local: &str, password: &str) {
        let credentials = keys(password, b"fedcba9876543210", 4096);
        let id = self.domain_id(domain);
        let answer = self.ask(SetCredentials { domain: id, local: local.into(), credentials });
        answer.expect("the account is there");
        let account = BareJid::from_parts(Some(local), domain).expect("an account has an address");
        for shard in 0..self.shard_count() {
            let command = Command::Changed { accounts: [account.clone()].into() };
            drop(self.begin_at(shard, |reply| ShardMessage::Command { command, reply }));
        }
        self.settle();
    }

    /// Begins a command for `name`; its outcome, once there is one. The first node, which is given it, sends it on to where its home is.
    pub fn begin(&mut self, name: &str, command: Command) -> Receiver<Outcome> {
        let home = self.home_of_account(name);
        self.begin_at(home, |reply| ShardMessage::Command { command, reply })
    }

    /// Gives a shard a message that wants an outcome.
    pub fn begin_at(
        &mut self,
        shard: usize,
        message: impl FnOnce(ReplyTo) -> ShardMessage,
    ) -> Receiver<Outcome> {
        let (sender, outcome) = sync_channel(1);
        let (number, node) = (self.replies.len() as u64, self.place(shard).node);
        self.replies.push(Some(sender));
        let reply = ReplyTo { node, number };
        self.give(shard, Input::Message(message(reply)));
        outcome
    }

    /// Gives the home of `name` a message.
    pub fn message(&mut self, name: &str, message: ShardMessage) {
        let home = self.home_of_account(name);
        self.give(home, Input::Message(message));
    }

    /// The outcome of a command comes to the node that gave it. Who gave it may have lost interest; a second outcome is for nobody.
    pub(super) fn replied(&mut self, to: ReplyTo, outcome: Outcome) {
        if let Some(sender) = self.replies.get_mut(to.number as usize).and_then(Option::take) {
            drop(sender.try_send(outcome));
        }
    }

    /// Has a command carried out at the home of `name`, and all that comes of it.
    pub fn command(&mut self, name: &str, command: Command) -> Outcome {
        let outcome = self.begin(name, command);
        self.settle();
        outcome.try_recv().expect("a command is answered once nothing is under way")
    }
}

fn keys(password: &str, salt: &[u8; 16], iterations: u32) -> Credentials {
    scram::keys(password, salt, iterations).expect("a password that can be one")
}

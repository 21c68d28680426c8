//! Commands about notifications, whose ids do not say which account they are for.

use crate::Effect;
use crate::command::{Command, Outcome, ReplyTo};
use crate::machine::Turn;
use crate::message::{ClaimMessage, ShardMessage};
use crate::model::{NodeId, NotificationId, Partition, Place, ShardId};
use crate::ports::store::notifications as stored;
use crate::session::Cx;

impl Turn<'_> {
    /// A command about a notification goes to the home of its account. Its id says which node keeps that; where the keeper is not the home of
    /// all accounts with such a name, the store says which account it is. One that is never stored is looked for where such accounts are at
    /// home. The command comes back if it is to be carried out here.
    pub(in crate::machine) fn find_home(
        &mut self,
        id: NotificationId,
        command: Command,
        reply: ReplyTo,
    ) -> Option<ShardMessage> {
        let keeper = self.cx.shard.directory.home_of_notification(id);
        if keeper != self.cx.shard.place {
            self.cx.post(keeper, ShardMessage::Command { command, reply });
            return None;
        }
        if !self.cx.shard.claims.is_open(Partition::of_bucket(id.bucket())) {
            // Who has claimed what is not known yet: in some seconds it is.
            self.cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Unavailable });
            return None;
        }
        if self.cx.shard.claims.nodes_with(id.bucket()).is_empty() || self.knows(id) {
            return Some(ShardMessage::Command { command, reply });
        }
        let look = move |command, reply, cx: &mut Cx<'_>| {
            let left = cx.shard.claims.nodes_with(id.bucket());
            let find = ClaimMessage::Find { command, reply, left, keeper };
            cx.post(keeper, ShardMessage::Claim(Box::new(find)));
        };
        self.tell_account(id, command, reply, look);
        None
    }

    /// A command about a notification goes to the home of the account that the store says, or it is dealt with otherwise.
    pub(super) fn tell_account(
        &mut self,
        id: NotificationId,
        command: Command,
        reply: ReplyTo,
        not_stored: impl FnOnce(Command, ReplyTo, &mut Cx<'_>) + Send + 'static,
    ) {
        self.cx.ask(stored::Trace { id }, move |found, _, cx| match found {
            Ok(Some(trace)) => {
                let at = cx.shard.directory.account(trace.to.as_str());
                let message = ClaimMessage::Command { account: trace.to.clone(), command, reply };
                cx.post(at, ShardMessage::Claim(Box::new(message)));
            }
            Ok(None) => not_stored(command, reply, cx),
            Err(fault) => cx.out.push(Effect::Reply { to: reply, outcome: fault.into() }),
        });
    }

    pub(super) fn knows(&self, id: NotificationId) -> bool {
        self.cx.pipeline.traces.is_some_and(|handler| (handler.knows)(id, &self.cx))
    }

    /// A notification that is never stored is looked for: here, then on these nodes; known nowhere, its keeper answers.
    pub(super) fn look_for(
        &mut self,
        command: Command,
        reply: ReplyTo,
        mut left: Vec<NodeId>,
        keeper: Place,
    ) {
        let (Command::Cancel { id } | Command::Trace { id }) = command else { return };
        if self.knows(id) {
            return self.command(command, reply);
        }
        if keeper == self.cx.shard.place && left.is_empty() {
            // It may have been stored meanwhile.
            return self.tell_account(id, command, reply, |_, reply, cx| {
                cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Missing });
            });
        }
        let next = match left.pop() {
            Some(node) if node == self.own() => keeper,
            Some(node) => {
                let shards = self.cx.shard.claims.shards_of(node).unwrap_or(u16::MAX);
                Place { node, shard: ShardId(id.bucket() % shards.max(1)) }
            }
            None => keeper,
        };
        let message = ClaimMessage::Find { command, reply, left, keeper };
        self.cx.post(next, ShardMessage::Claim(Box::new(message)));
    }
}

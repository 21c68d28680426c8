//! Nodes came or went: homes are elsewhere. What was decided here of those that are gone is forgotten, and decided there from now on by
//! what the store says.

use super::{Turn, light};
use crate::message::ShardMessage;
use crate::model::{NodeId, SessionId, queue_address, topic_address};
use crate::ports::Directory;
use crate::session::account_reads;
use std::sync::Arc;

impl Turn<'_> {
    /// Homes are where `directory` says from now on. Those of accounts stay where they are.
    pub(super) fn move_homes(&mut self, directory: &Arc<dyn Directory>) {
        let here = self.cx.shard.place;
        let before = std::mem::replace(&mut self.cx.shard.directory, Arc::clone(directory));
        let is_here = |name: &str| directory.home(name) == here;
        let (sessions, claims) = (&*self.sessions, &self.cx.shard.claims);
        let is_known = |name: &str| is_here(name) || sessions.has_any(name) || claims.holds(name);
        self.cx.shard.accounts.login_cache.keep_homes(is_known);
        self.cx.homes.forget_all_empty();
        let domains = Arc::clone(&self.cx.shard.domains);
        let is_of = |domain, address: &dyn Fn(&str) -> String| {
            domains.numbered(domain).is_some_and(|domain| is_here(&address(&domain.name)))
        };
        self.topics
            .keep_homes(|key| is_of(key.domain, &|domain| topic_address(&key.name, domain)), &mut self.cx);
        self.rooms
            .keep_homes(|key| is_of(key.domain, &|domain| key.kind.address(&key.name, domain)), &mut self.cx);
        let is_queue_here = |domain, name: &str| is_of(domain, &|domain: &str| queue_address(name, domain));
        self.matches.keep_homes(is_queue_here, &mut self.cx);
        self.keepers_changed(&*before);
        light::homes_moved(&mut self.cx);
        let is_there = |node: &&NodeId| directory.other_nodes().contains(node);
        let gone: Vec<NodeId> = before.other_nodes().iter().filter(|node| !is_there(node)).copied().collect();
        self.cx.shard.adoption.lose(&gone, self.cx.now.mono);
        account_reads::nodes_gone(&gone, self.sessions, &mut self.cx);
        let sessions: Vec<_> = self.sessions.all_bound().map(|session| session.id).collect();
        for session in sessions {
            self.tell_moved(session, &*before);
        }
        for message in self.cx.shard.adoption.take_kept() {
            self.message(ShardMessage::Adoption(Box::new(message)));
        }
    }

    fn tell_moved(&mut self, id: SessionId, before: &dyn Directory) {
        let hooks = &self.cx.pipeline.homes_moved;
        if hooks.is_empty() {
            return;
        }
        let Some(mut session) = self.sessions.take_bound(id) else { return };
        for hook in hooks {
            hook(&mut session, before, &mut self.cx);
        }
        self.sessions.put_bound(session);
    }
}

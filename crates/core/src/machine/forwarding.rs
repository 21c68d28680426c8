//! A message came for a home that is on another node: it goes on to there. That of a topic or a room may have moved while the message was on
//! its way; that of an account is known by the shard of each node that its name leads to.

use super::Turn;
use crate::command::Command;
use crate::message::ShardMessage;
use crate::model::{DomainId, queue_address, topic_address};
use crate::ports::store::notifications::Whose;
use carillon_wire::jid::BareJid;

/// What a message is for.
enum Subject {
    /// This shard, whatever moves.
    Here,
    /// The home of an account.
    Account(BareJid),
    /// The home of a topic or a room, by its address; none if its domain is not known.
    Place(Option<String>),
}

impl Turn<'_> {
    /// Sends a message on whose home is on another node. It comes back if this shard is to take it.
    pub(super) fn forward(&mut self, message: ShardMessage) -> Option<ShardMessage> {
        let message = match message {
            ShardMessage::ForAccounts { to, message } => {
                let to = self.pass_account_message_on(to, &message);
                return (!to.is_empty()).then_some(ShardMessage::ForAccounts { to, message });
            }
            ShardMessage::RoomEvent(event) => return self.pass_event_on(event),
            // It is not known here yet that its node is dead.
            ShardMessage::Adoption(message) if self.leads_to_the_dead(&message) => {
                self.cx.shard.adoption.keep(*message);
                return None;
            }
            ShardMessage::Command { command, reply } => match command {
                Command::Cancel { id } | Command::Trace { id } => {
                    return self.find_home(id, command, reply);
                }
                command => ShardMessage::Command { command, reply },
            },
            message => message,
        };
        match self.subject(&message) {
            Subject::Here => Some(message),
            Subject::Account(account) => self.pass_on(&account, message),
            Subject::Place(address) => {
                let Some(address) = address else { return Some(message) };
                let home = self.cx.shard.directory.home(&address);
                if home == self.cx.shard.place {
                    return Some(message);
                }
                self.cx.post(home, message);
                None
            }
        }
    }

    fn subject(&self, message: &ShardMessage) -> Subject {
        match message {
            ShardMessage::Stanza { stanza, .. } | ShardMessage::Reply { stanza } => match &stanza.to {
                Some(to) => Subject::Account(to.bare()),
                None => Subject::Here,
            },
            ShardMessage::Subscribed { account, .. } | ShardMessage::Unsubscribed { account, .. } => {
                Subject::Account(account.clone())
            }
            ShardMessage::Adoption(message) => Subject::Account(message.account().clone()),
            ShardMessage::MessageExpired(expired) => Subject::Account(expired.to.clone()),
            ShardMessage::Expired(trace) => Subject::Account(trace.to.clone()),
            ShardMessage::Topic { domain, name, .. } => {
                Subject::Place(self.name_of(*domain).map(|domain| topic_address(name, &domain)))
            }
            ShardMessage::Room { domain, kind, name, .. } => {
                Subject::Place(self.name_of(*domain).map(|domain| kind.address(name, &domain)))
            }
            ShardMessage::Command { command, .. } => self.subject_of(command),
            _ => Subject::Here,
        }
    }

    fn subject_of(&self, command: &Command) -> Subject {
        match command {
            Command::Notify(notification) | Command::NotifyFollowed { notification, .. } => {
                Subject::Account(notification.to.clone())
            }
            Command::Act { account, .. }
            | Command::RevokeTokens { account, .. }
            | Command::RemoveAccount { account, .. }
            | Command::Hears { account, .. }
            | Command::RenderPush { account, .. }
            | Command::Sessions { account: Some(account), .. } => Subject::Account(account.clone()),
            Command::Kick { jid, .. } if jid.local().is_some() => Subject::Account(jid.bare()),
            Command::TracesInMemory { query, .. } => match &query.whose {
                Whose::Account(domain, local) => {
                    let domain = self.name_of(*domain);
                    let account = domain.and_then(|domain| BareJid::new(&format!("{local}@{domain}")).ok());
                    account.map_or(Subject::Here, Subject::Account)
                }
                Whose::Anyones | Whose::Domain(_) => Subject::Here,
            },
            Command::Topic { domain, name, .. } => {
                Subject::Place(self.name_of(*domain).map(|domain| topic_address(name, &domain)))
            }
            Command::Room { domain, kind, name, .. } => {
                Subject::Place(self.name_of(*domain).map(|domain| kind.address(name, &domain)))
            }
            Command::Queue { domain, name, .. } => {
                Subject::Place(self.name_of(*domain).map(|domain| queue_address(name, &domain)))
            }
            _ => Subject::Here,
        }
    }

    fn name_of(&self, domain: DomainId) -> Option<String> {
        self.cx.shard.domains.numbered(domain).map(|domain| domain.name.to_string())
    }
}

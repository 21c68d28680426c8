//! What a group of writes locks before it begins: the accounts and other things that its writes are about.
//!
//! Locks are advisory ones of the transaction, taken in one order by all. So writes of the same account are one after the other, what is read of
//! it is true until the commit, numbers that are given ascend in the order of the commits, and no two groups wait for each other. A write that
//! is not listed here locks everything: that is right, and slow.

use super::column::Id;
use crate::engine::asked::Write;
use carillon_core::model::{DomainId, bucket};
use carillon_core::ports::store::{
    WriteAsk, accounts, activity, acts, archive, blocking, broadcasts, cells, domains, endpoints,
    idempotency, inbox, invitations, items, leases, links, nodes, notifications, offline, parked, private,
    push, rooms, roster, subscriptions, topics, uploads, vcard,
};
use tokio_postgres::types::ToSql;

/// Shared by all groups, and one group's alone that has a write which locks everything.
const EVERYTHING: i64 = 0;
/// Things that are locked as a whole, and are no account's.
const DUE: i64 = 1;
const LEASES: i64 = 2;
const CLICKS: i64 = 3;
const PARKED: i64 = 4;
const UPLOADS: i64 = 5;
const BROADCASTS: i64 = 6;
const PUSHES: i64 = 7;
const ACTS: i64 = 8;
const CELLS: i64 = 9;
/// Keys of a kind begin with it; the number of the thing follows.
const API_KEY: i64 = 1 << 32;
const TOPIC: i64 = 2 << 32;
const ROOM: i64 = 3 << 32;
/// Those of a domain: how many there are is bounded.
const INVITATIONS: i64 = 4 << 32;
/// The links of a domain: how many there are is bounded, and a code is given once.
const LINKS_OF: i64 = 6 << 32;
/// What an account has read of its rooms, by a hash of its local part.
const READER: i64 = 5 << 32;

/// Members of one change that are locked one by one.
const READERS_MAX: usize = 64;

/// The locks of a group.
#[derive(Debug, Default)]
pub(super) struct Keys {
    named: Vec<i64>,
    alone: Vec<bool>,
    domains: Vec<i64>,
    locals: Vec<String>,
    notifications: Vec<Id>,
    /// Hashes of invitations.
    invitations: Vec<Vec<u8>>,
}

impl Keys {
    /// Those of these writes.
    pub(super) fn of(asks: &[Write]) -> Keys {
        let mut keys = Keys::default();
        let mut everything = false;
        for asked in asks {
            everything |= keys.add(&asked.ask).is_none();
        }
        if everything {
            // Nothing else is needed.
            keys = Keys::default();
        }
        keys.named.push(EVERYTHING);
        keys.alone.push(everything);
        keys
    }

    /// What `lock_keys` wants.
    pub(super) fn params(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.named, &self.alone, &self.domains, &self.locals, &self.notifications, &self.invitations]
    }

    /// Adds those of a write; none where it locks everything.
    fn add(&mut self, ask: &WriteAsk) -> Option<()> {
        match ask {
            WriteAsk::Accounts(accounts::WriteAsk::CreateAccount(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Accounts(accounts::WriteAsk::SetCredentials(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Accounts(accounts::WriteAsk::SetAccountState(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Accounts(accounts::WriteAsk::RevokeTokens(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Notifications(asked) => self.add_notifications(asked)?,
            WriteAsk::Offline(offline::WriteAsk::StoreOffline(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Offline(offline::WriteAsk::DeleteOffline(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Idempotency(asked) => {
                let key = match asked {
                    idempotency::WriteAsk::Reserve(asked) => asked.key,
                    idempotency::WriteAsk::Remember(asked) => asked.key,
                    idempotency::WriteAsk::Release(asked) => asked.key,
                    idempotency::WriteAsk::NoteLines(asked) => asked.key,
                };
                self.name(API_KEY + i64::from(key.0));
            }
            WriteAsk::Leases(leases::WriteAsk::TakeLease(_) | leases::WriteAsk::ReleaseLease(_)) => {
                self.name(LEASES);
            }
            // A number that nobody else writes, and that is measured anew.
            WriteAsk::Domains(domains::WriteAsk::NoteStored(_)) => {}
            WriteAsk::Acts(acts::WriteAsk::NoteAct(_)) => self.name(ACTS),
            WriteAsk::Parked(parked::WriteAsk::StoreParked(_) | parked::WriteAsk::ForgetParked(_)) => {
                self.name(PARKED);
            }
            WriteAsk::Links(asked) => self.add_links(asked),
            WriteAsk::Activity(activity::WriteAsk::NoteAvailable(asked)) => {
                for one in &asked.of {
                    self.account(one.domain, &one.local);
                }
            }
            WriteAsk::Vcard(vcard::WriteAsk::StoreVcard(asked)) => self.account(asked.domain, &asked.local),
            WriteAsk::Private(private::WriteAsk::StorePrivate(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Blocking(asked) => self.add_blocking(asked),
            WriteAsk::Nodes(asked) => self.add_nodes(asked),
            WriteAsk::Roster(asked) => self.add_rosters(asked),
            WriteAsk::Archive(archive::WriteAsk::KeepMessage(asked)) => {
                for side in [&asked.sender, &asked.recipient].into_iter().flatten() {
                    self.account(side.domain, &side.local);
                }
            }
            WriteAsk::Archive(archive::WriteAsk::EraseArchive(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Archive(archive::WriteAsk::SetArchivePreferences(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Inbox(asked) => self.add_inbox(asked),
            other => self.add_topics(other)?,
        }
        Some(())
    }

    /// The same of a write about a topic, a broadcast, a room or a file.
    fn add_topics(&mut self, ask: &WriteAsk) -> Option<()> {
        match ask {
            // What an account acknowledged is not asked for until its home has heard that this is committed.
            WriteAsk::Broadcasts(
                broadcasts::WriteAsk::CreateBroadcast(_)
                | broadcasts::WriteAsk::ChangeBroadcast(_)
                | broadcasts::WriteAsk::EndBroadcasts(_),
            ) => self.name(BROADCASTS),
            WriteAsk::Items(asked) => {
                let topic = match asked {
                    items::WriteAsk::Publish(asked) => asked.item.topic,
                    items::WriteAsk::Retract(asked) => asked.topic,
                    items::WriteAsk::Purge(asked) => asked.topic,
                };
                self.name(TOPIC + i64::from(topic.0));
            }
            WriteAsk::Subscriptions(asked) => {
                let (topic, domain, local) = match asked {
                    subscriptions::WriteAsk::Subscribe(asked) => (asked.topic, asked.domain, &asked.local),
                    subscriptions::WriteAsk::Unsubscribe(asked) => (asked.topic, asked.domain, &asked.local),
                };
                // Of the topic it only matters that it stays, and what its last item is.
                self.share(TOPIC + i64::from(topic.0));
                self.account(domain, local);
            }
            WriteAsk::Topics(topics::WriteAsk::SetAffiliations(asked)) => {
                self.name(TOPIC + i64::from(asked.topic.0));
            }
            WriteAsk::Topics(topics::WriteAsk::ConfigureTopic(asked)) => {
                self.name(TOPIC + i64::from(asked.topic.0));
            }
            WriteAsk::Rooms(asked) => self.add_rooms(asked)?,
            WriteAsk::Uploads(asked) => self.add_uploads(asked),
            WriteAsk::Invitations(asked) => self.add_invitations(asked),
            WriteAsk::Push(asked) => self.add_pushes(asked)?,
            WriteAsk::Endpoints(endpoints::WriteAsk::RegisterEndpoint(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            WriteAsk::Endpoints(endpoints::WriteAsk::RevokeEndpoints(asked)) => {
                self.account(asked.domain, &asked.local);
            }
            // What cells have is counted in their rows.
            WriteAsk::Cells(
                cells::WriteAsk::CreateCell(_)
                | cells::WriteAsk::ChangeCell(_)
                | cells::WriteAsk::RemoveCell(_)
                | cells::WriteAsk::Place(_)
                | cells::WriteAsk::Unplace(_)
                | cells::WriteAsk::MoveDevice(_)
                | cells::WriteAsk::Hold(_)
                | cells::WriteAsk::Release(_)
                | cells::WriteAsk::ExpireHeld(_),
            ) => self.name(CELLS),
            _ => return None,
        }
        Some(())
    }

    /// The same of a write about pushes. Those of an account come with what is stored for it; rows that are claimed are held, and those that others hold are
    /// passed over. Those of who wants every message of a room come with a message of it: two groups may then meet at a push, and one is done again.
    fn add_pushes(&mut self, ask: &push::WriteAsk) -> Option<()> {
        match ask {
            // Others may not be added to the same rooms meanwhile.
            push::WriteAsk::EnablePush(asked) if !asked.rooms.is_empty() => return None,
            push::WriteAsk::EnablePush(asked) => self.account(asked.domain, &asked.local),
            push::WriteAsk::DisablePush(asked) => self.account(asked.domain, &asked.local),
            push::WriteAsk::ClaimPushes(_) => self.name(PUSHES),
            push::WriteAsk::CommitPushes(asked) => {
                for push in &asked.pushes {
                    self.account(push.domain, &push.local);
                }
            }
        }
        Some(())
    }

    /// The same of a write about a room. Those that make one, remove one or go through all of them lock everything.
    fn add_rooms(&mut self, ask: &rooms::WriteAsk) -> Option<()> {
        let room = match ask {
            rooms::WriteAsk::ConfigureRoom(asked) => asked.room,
            rooms::WriteAsk::SetRoomMembers(asked) if asked.changes.len() > READERS_MAX => return None,
            rooms::WriteAsk::SetRoomMembers(asked) => {
                asked.changes.iter().for_each(|change| self.reader(change.jid.local()));
                asked.room
            }
            rooms::WriteAsk::SetRoomSubject(asked) => asked.room,
            rooms::WriteAsk::SetRoomVcard(asked) => asked.room,
            rooms::WriteAsk::KeepRoomMessage(asked) => {
                self.reader(asked.sender.local());
                if let Some(wake) = &asked.wake {
                    wake.mentioned.iter().for_each(|local| self.account(wake.domain, local));
                }
                asked.room
            }
            rooms::WriteAsk::ChangeRoomBlocks(asked) => {
                self.account(asked.domain, &asked.local);
                return Some(());
            }
            rooms::WriteAsk::ReplaceRoomMessage(asked) => asked.room,
            rooms::WriteAsk::EraseRoomArchive(asked) => asked.room,
            rooms::WriteAsk::CreateRoom(_)
            | rooms::WriteAsk::DestroyRoom(_)
            | rooms::WriteAsk::SweepRoomArchives(_) => return None,
        };
        self.name(ROOM + i64::from(room.0));
        Some(())
    }

    /// The same of a write about an inbox, in which rooms are, too.
    fn add_inbox(&mut self, ask: &inbox::WriteAsk) {
        let (domain, local) = match ask {
            inbox::WriteAsk::ChangeConversation(asked) => (asked.domain, &asked.local),
            inbox::WriteAsk::EmptyBin(asked) => (asked.domain, &asked.local),
        };
        self.account(domain, local);
        self.reader(Some(local));
    }

    /// The same of a write about a file: what a domain's files take is one row.
    fn add_uploads(&mut self, ask: &uploads::WriteAsk) {
        if let uploads::WriteAsk::CreateSlot(asked) = ask {
            self.account(asked.domain, &asked.local);
        }
        self.name(UPLOADS);
    }

    /// The same of a write about an invitation. Its use is one by the account and by whoever made it.
    fn add_invitations(&mut self, ask: &invitations::WriteAsk) {
        let domain = match ask {
            invitations::WriteAsk::CreateInvitation(asked) => asked.domain,
            invitations::WriteAsk::RevokeInvitation(asked) => asked.domain,
            invitations::WriteAsk::RegisterInvited(asked) => {
                self.account(asked.domain, &asked.local);
                self.invitations.push(asked.hash.0.to_vec());
                asked.domain
            }
            invitations::WriteAsk::AcceptInvitation(asked) => {
                self.account(asked.domain, asked.account.local().unwrap_or_default());
                self.account(asked.inviter_domain, asked.inviter.local().unwrap_or_default());
                asked.inviter_domain
            }
        };
        self.name(INVITATIONS + i64::from(domain.0));
    }

    /// The same of a write about links. A click ends its notification, if that waits, and is noted where it may have ended long ago.
    fn add_links(&mut self, ask: &links::WriteAsk) {
        let domain = match ask {
            links::WriteAsk::LinkSecret(asked) => asked.domain,
            links::WriteAsk::CreateLink(asked) => asked.domain,
            links::WriteAsk::ChangeLink(asked) => asked.domain,
            links::WriteAsk::PutLinkFile(asked) => asked.domain,
            links::WriteAsk::CountClicks(_) => return self.name(CLICKS),
            links::WriteAsk::OpenNotifications(asked) => {
                self.notifications.extend(asked.clicks.iter().map(|click| Id::from(click.id)));
                return self.name(CLICKS);
            }
        };
        self.name(LINKS_OF + i64::from(domain.0));
    }

    fn add_notifications(&mut self, ask: &notifications::WriteAsk) -> Option<()> {
        match ask {
            notifications::WriteAsk::StoreNotification(asked) => {
                self.account(asked.notification.domain, asked.notification.to.local().unwrap_or_default());
            }
            notifications::WriteAsk::EndNotifications(asked) => {
                self.notifications.extend(asked.changes.iter().map(|change| Id::from(change.id)));
            }
            notifications::WriteAsk::CancelNotification(asked) => self.notifications.push(asked.id.into()),
            // The rows that it changes it holds, and passes over those that others hold.
            notifications::WriteAsk::ClaimDue(_) => self.name(DUE),
            notifications::WriteAsk::Sweep(_) => return None,
        }
        Some(())
    }

    fn add_blocking(&mut self, asked: &blocking::WriteAsk) {
        let (domain, local) = match asked {
            blocking::WriteAsk::ChangeBlockList(asked) => (asked.domain, &asked.local),
            blocking::WriteAsk::ChangePrivacyLists(asked) => (asked.domain, &asked.local),
        };
        self.account(domain, local);
    }

    /// A change of a subscription is one of both sides.
    fn add_rosters(&mut self, ask: &roster::WriteAsk) {
        let (domain, local, other, contact) = match ask {
            roster::WriteAsk::PutContact(asked) => (asked.domain, &asked.local, None, &asked.contact),
            roster::WriteAsk::RemoveContact(asked) => {
                (asked.domain, &asked.local, asked.other, &asked.contact)
            }
            roster::WriteAsk::ChangeSubscription(asked) => {
                (asked.domain, &asked.local, Some(asked.other), &asked.contact)
            }
        };
        self.account(domain, local);
        if let (Some(other), Some(local)) = (other, contact.local()) {
            self.account(other, local);
        }
    }

    fn reader(&mut self, local: Option<&str>) {
        self.name(READER + i64::from(bucket(local.unwrap_or_default())));
    }

    fn add_nodes(&mut self, asked: &nodes::WriteAsk) {
        match asked {
            nodes::WriteAsk::EditNode(asked) => self.account(asked.domain, &asked.local),
            nodes::WriteAsk::EditNodes(asked) => self.account(asked.domain, &asked.local),
        }
    }

    fn account(&mut self, domain: DomainId, local: &str) {
        self.domains.push(domain.0.into());
        self.locals.push(local.to_owned());
    }

    fn share(&mut self, key: i64) {
        self.named.push(key);
        self.alone.push(false);
    }

    fn name(&mut self, key: i64) {
        self.named.push(key);
        self.alone.push(true);
    }
}

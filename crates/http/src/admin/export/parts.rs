//! What is read of an account, kind by kind. A page is bounded in entries and bytes.

use super::record::{ContactRecord, ExportRecord, KeysRecord, PrivacyRuleRecord};
use super::{Export, Lines, Stop};
use crate::problem::Problem;
use crate::provider::conversations::ConversationView;
use crate::provider::items::ItemView;
use crate::provider::messages::MessageView;
use crate::provider::notifications::NotificationView;
use crate::push::api as push;
use crate::push_service::api as endpoint;
use crate::values::jids;
use crate::values::time::{Time, now};
use carillon_core::model::{
    AccountState, ArchiveFilter, ArchiveId, ArchiveStart, EndpointId, InboxFilter, InvitationId, ItemsFrom,
    Node, NotificationId, RecordParts, RegistrationId, RoomKind, RoomOfAccount, States, UnixMs,
};
use carillon_core::ports::Page;
use carillon_core::ports::store::accounts::{Account, Identity};
use carillon_core::ports::store::activity::LastAvailable;
use carillon_core::ports::store::archive::{ArchivePage, ArchivePageAnswer};
use carillon_core::ports::store::endpoints::ListEndpoints;
use carillon_core::ports::store::inbox::ReadInbox;
use carillon_core::ports::store::invitations::Invitations;
use carillon_core::ports::store::nodes::NodeItems;
use carillon_core::ports::store::notifications::{NotificationQuery, Whose};
use carillon_core::ports::store::offline::Offline;
use carillon_core::ports::store::private::PrivateElements;
use carillon_core::ports::store::push::ListRegistrations;
use carillon_core::ports::store::rooms::{RoomArchivePage, RoomBlocks, RoomsOf};
use carillon_core::ports::store::roster::ReadRecord;
use carillon_core::ports::store::subscriptions::SubscriptionsOf;
use carillon_core::ports::store::uploads::UploadsOf;
use carillon_core::ports::store::vcard::ReadVcard;

/// What is asked for at a time.
const PAGE: Page = Page { entries: 200, bytes: 256 << 10 };

impl Export {
    fn local(&self) -> Box<str> {
        jids::local(&self.jid)
    }

    /// The first line, and when the account was created; a problem if there is no such account.
    pub(super) async fn account(&self) -> Result<(ExportRecord, UnixMs), Problem> {
        let (domain, local) = (self.domain.id, self.local());
        let enrolment = self.app.ask(Account { domain, local: local.clone() }).await?;
        let enrolment = enrolment.ok_or_else(|| self.missing())?;
        let available = self.app.ask(LastAvailable { domain, local }).await?;
        let record = ExportRecord::Account {
            jid: self.jid.as_str().to_owned(),
            state: match enrolment.state {
                AccountState::Enabled => "enabled",
                AccountState::Disabled(_) => "disabled",
            },
            created_at: Time(enrolment.created),
            last_available_at: available.map(Time),
        };
        Ok((record, enrolment.created))
    }

    /// The keys of its password.
    pub(super) async fn credentials(&self, lines: &mut Lines) -> Result<(), Stop> {
        let identity = self.app.ask(Identity { domain: self.domain.id, local: self.local() }).await?;
        let credentials = identity.ok_or_else(|| self.missing())?.credentials;
        let line = ExportRecord::Credentials {
            scram_sha1: credentials.sha1.as_ref().map(KeysRecord::of),
            scram_sha256: credentials.sha256.as_ref().map(KeysRecord::of),
        };
        lines.put(&line).await
    }

    pub(super) async fn topics(&self, lines: &mut Lines) -> Result<(), Stop> {
        let topics = self.app.ask(SubscriptionsOf { domain: self.domain.id, local: self.local() }).await?;
        for (_, name) in topics {
            lines.put(&ExportRecord::Topic { name: name.into() }).await?;
        }
        Ok(())
    }

    /// The account's record: contacts, whom it blocks, and nodes.
    pub(super) async fn record(&self, lines: &mut Lines) -> Result<(), Stop> {
        let parts = RecordParts { roster: true, blocked: true, nodes: true, privacy: true };
        let asked = ReadRecord { domain: self.domain.id, local: self.local(), parts, about: Vec::new() };
        let record = self.app.ask(asked).await?.ok_or_else(|| self.missing())?;
        for contact in &record.roster.contacts {
            lines.put(&ExportRecord::Contact(ContactRecord::of(contact))).await?;
        }
        for jid in &record.blocked {
            lines.put(&ExportRecord::Blocked { jid: jid.to_string() }).await?;
        }
        if let Some(privacy) = &record.privacy {
            for list in &privacy.lists {
                let (name, is_default) =
                    (list.name.to_string(), privacy.default.as_ref() == Some(&list.name));
                let rules = list.rules.iter().map(PrivacyRuleRecord::of).collect();
                lines.put(&ExportRecord::PrivacyList { name, is_default, rules }).await?;
            }
        }
        for node in &record.nodes {
            self.node(node, lines).await?;
        }
        Ok(())
    }

    async fn node(&self, node: &Node, lines: &mut Lines) -> Result<(), Stop> {
        let name = node.name.to_string();
        let (created_at, access_model) = (Time(node.created), node.config.access_model);
        lines.put(&ExportRecord::Node { name, created_at, access_model }).await?;
        let mut from = ItemsFrom::Newest;
        loop {
            let asked = NodeItems {
                domain: self.domain.id,
                local: self.local(),
                node: node.name.clone(),
                ids: Vec::new(),
                from,
                max: PAGE.entries.into(),
                bytes_max: PAGE.bytes,
            };
            // Where the last item of the page before is gone meanwhile, so is where to go on.
            let items = self.app.ask(asked).await?.unwrap_or_default();
            let Some(last) = items.last() else { return Ok(()) };
            from = ItemsFrom::After(last.id.clone());
            for item in &items {
                let (node, item) = (node.name.to_string(), ItemView::of(item));
                lines.put(&ExportRecord::Item { node, item }).await?;
            }
        }
    }

    /// What its clients keep, and its vCard.
    pub(super) async fn private(&self, lines: &mut Lines) -> Result<(), Stop> {
        let elements = self.app.ask(PrivateElements { domain: self.domain.id, local: self.local() }).await?;
        for element in elements {
            lines.put(&ExportRecord::Private { xml: text(&element.xml) }).await?;
        }
        let vcard = self.app.ask(ReadVcard { domain: self.domain.id, local: self.local() }).await?;
        if let Some(xml) = vcard {
            lines.put(&ExportRecord::Vcard { xml: text(&xml) }).await?;
        }
        Ok(())
    }

    pub(super) async fn conversations(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut start = ArchiveStart::First;
        loop {
            let (domain, local, filter) = (self.domain.id, self.local(), InboxFilter::default());
            let asked = ReadInbox { domain, local, filter, is_oldest_first: false, start, page: PAGE };
            let page = self.app.ask(asked).await?.ok_or_else(|| self.missing())?;
            for entry in &page.entries {
                lines.put(&ExportRecord::Conversation(ConversationView::of(entry, false, now()))).await?;
            }
            let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(()) };
            start = ArchiveStart::After(last.place());
        }
    }

    pub(super) async fn messages(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut start = ArchiveStart::First;
        loop {
            let (domain, local, filter) = (self.domain.id, self.local(), ArchiveFilter::default());
            let answer = self.app.ask(ArchivePage { domain, local, filter, start, page: PAGE }).await?;
            let ArchivePageAnswer::Page { messages, more, reached } = answer else { return Ok(()) };
            for message in &messages {
                lines.put(&ExportRecord::Message(MessageView::of(message))).await?;
            }
            let last = reached.or(messages.last().map(|last| last.id));
            let Some(last) = last.filter(|_| more) else { return Ok(()) };
            start = ArchiveStart::After(last);
        }
    }

    pub(super) async fn offline(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut after = 0;
        loop {
            let asked = Offline { domain: self.domain.id, local: self.local(), after, page: PAGE };
            let part = self.app.ask(asked).await?;
            for message in &part.entries {
                after = message.seq;
                let (received_at, expires_at) = (Time(message.received), message.expires.map(Time));
                let xml = text(&message.stanza);
                lines.put(&ExportRecord::OfflineMessage { received_at, expires_at, xml }).await?;
            }
            if !part.more {
                return Ok(());
            }
        }
    }

    /// The rooms of its domain that list it, what it said in them, and what it blocks of them.
    pub(super) async fn rooms(&self, lines: &mut Lines) -> Result<(), Stop> {
        for kind in RoomKind::ALL {
            let mut after = None;
            loop {
                let (domain, jid, limit) = (self.domain.id, self.jid.clone(), PAGE.entries);
                let rooms = self.app.ask(RoomsOf { domain, kind, jid, after, limit }).await?;
                for room in &rooms {
                    self.room(kind, room, lines).await?;
                }
                let Some(last) = rooms.last().filter(|_| rooms.len() == usize::from(limit)) else { break };
                after = Some(last.name.clone());
            }
        }
        let blocks = self.app.ask(RoomBlocks { domain: self.domain.id, local: self.local() }).await?;
        for block in blocks {
            let (jid, is_room) = (block.jid.as_str().to_owned(), block.is_room);
            lines.put(&ExportRecord::RoomBlock { jid, is_room }).await?;
        }
        Ok(())
    }

    async fn room(&self, kind: RoomKind, room: &RoomOfAccount, lines: &mut Lines) -> Result<(), Stop> {
        let address = kind.address(&room.name, &self.domain.name);
        let (title, affiliation) = (room.title.to_string(), room.affiliation);
        let line = ExportRecord::Room { room: address.clone(), title, affiliation, protocol: kind };
        lines.put(&line).await?;
        let mut start = ArchiveStart::First;
        loop {
            let filter = ArchiveFilter { with: Some(self.jid.to_jid()), ..ArchiveFilter::default() };
            let asked = RoomArchivePage { room: room.id, since: ArchiveId(0), filter, start, page: PAGE };
            let answer = self.app.ask(asked).await?;
            let ArchivePageAnswer::Page { messages, more, reached } = answer else { return Ok(()) };
            for message in &messages {
                let (room, message) = (address.clone(), MessageView::of(message));
                lines.put(&ExportRecord::RoomMessage { room, message }).await?;
            }
            let last = reached.or(messages.last().map(|last| last.id));
            let Some(last) = last.filter(|_| more) else { return Ok(()) };
            start = ArchiveStart::After(last);
        }
    }

    /// Those since it was created: what somebody was sent who had its name before is not its own.
    pub(super) async fn notifications(&self, created: UnixMs, lines: &mut Lines) -> Result<(), Stop> {
        let mut before = NotificationId(u128::MAX);
        loop {
            let whose = Whose::Account(self.domain.id, self.local());
            let (from, limit) = (NotificationId::first_at(created), PAGE.entries);
            let asked = NotificationQuery { whose, states: States::ALL, key: None, from, before, limit };
            let listing = self.app.ask(asked).await?;
            for trace in &listing.traces {
                lines.put(&ExportRecord::Notification(Box::new(NotificationView::from(trace)))).await?;
            }
            let Some(next) = listing.next else { return Ok(()) };
            before = next;
        }
    }

    pub(super) async fn registrations(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut after = RegistrationId(0);
        loop {
            let (domain, account) = (Some(self.domain.id), Some(self.local()));
            let part = self.app.ask(ListRegistrations { domain, account, after, max: PAGE.entries }).await?;
            for registration in &part.entries {
                after = registration.id;
                lines.put(&ExportRecord::PushRegistration(push::view(registration))).await?;
            }
            if !part.more {
                return Ok(());
            }
        }
    }

    pub(super) async fn endpoints(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut after = EndpointId(0);
        loop {
            let (domain, account) = (self.domain.id, Some(self.local()));
            let part = self.app.ask(ListEndpoints { domain, account, after, max: PAGE.entries }).await?;
            for found in &part.entries {
                after = found.id;
                lines.put(&ExportRecord::PushEndpoint(endpoint::view(found))).await?;
            }
            if !part.more {
                return Ok(());
            }
        }
    }

    pub(super) async fn uploads(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut after = None;
        loop {
            let asked = UploadsOf { domain: self.domain.id, local: self.local(), after, max: PAGE.entries };
            let files = self.app.ask(asked).await?;
            for (id, file) in &files {
                let line = ExportRecord::Upload {
                    id: id.to_string(),
                    name: file.name.to_string(),
                    media_type: file.media_type.to_string(),
                    bytes: file.bytes,
                    expires_at: Time(file.expires),
                    is_uploaded: file.attempt.is_some(),
                };
                lines.put(&line).await?;
            }
            let is_full = files.len() == usize::from(PAGE.entries);
            let Some((id, file)) = files.last().filter(|_| is_full) else { return Ok(()) };
            after = Some((file.expires, *id));
        }
    }

    pub(super) async fn invitations(&self, lines: &mut Lines) -> Result<(), Stop> {
        let mut before = InvitationId(u64::MAX);
        let local = self.local();
        loop {
            let asked = Invitations { domain: self.domain.id, before, limit: PAGE.entries };
            let found = self.app.ask(asked).await?;
            for invitation in found.iter().filter(|one| one.inviter.as_ref() == Some(&local)) {
                let line = ExportRecord::Invitation {
                    id: invitation.id.0,
                    localpart: invitation.local.as_deref().map(str::to_owned),
                    uses_max: invitation.uses_max,
                    uses: invitation.uses,
                    created_at: Time(invitation.created),
                    expires_at: Time(invitation.expires),
                };
                lines.put(&line).await?;
            }
            let is_full = found.len() == usize::from(PAGE.entries);
            let Some(last) = found.last().filter(|_| is_full) else { return Ok(()) };
            before = last.id;
        }
    }
}

fn text(xml: &[u8]) -> String {
    String::from_utf8_lossy(xml).into_owned()
}

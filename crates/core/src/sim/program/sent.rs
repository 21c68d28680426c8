//! What must hold of everything that a client is sent, and of how much may wait for it.

use super::chats::number;
use super::{Client, Connected, Program, holds};
use crate::ports::Question;
use crate::ports::store::notifications::Pending;
use crate::ports::store::offline::Offline;
use crate::shard::TURN_BYTES_MAX;
use crate::sim::client::{XmppClient, is_stanza, value};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that may wait for a connection: few, so that the bound is met, and enough for what is written in one turn.
pub(super) const QUEUE_BYTES_MAX: usize = 40 * 1024;
/// The largest element that anybody sends here, with what the server adds to it.
const ELEMENT_BYTES_MAX: usize = 8 * 1024;
/// Room past the bound of a queue for a stream error and the stream's end (`connection::SendQueue`).
const LAST_WORDS_BYTES_MAX: usize = 4096;

impl Program {
    /// What clients were sent since it was looked at, and what waits for them.
    pub(super) fn check_sent(&mut self) -> Result<(), String> {
        for whose in 0..self.clients.len() {
            let connected = &mut self.clients[whose];
            if connected.is_over {
                continue;
            }
            let link = self.world.connection(connected.link);
            if link.dealt_with() == Some(link.said())
                && let Client::Xmpp(client) = &connected.client
            {
                connected.acknowledged = client.acknowledges;
            }
            let mut elements = Vec::new();
            for (element, end) in link.sent_after(connected.seen_bytes) {
                connected.seen_bytes = end;
                elements.push(String::from_utf8_lossy(element).into_owned());
            }
            for text in elements {
                self.is_sent(whose, &text)?;
            }
            self.check_queue(whose)?;
            self.check_unacknowledged(whose)?;
        }
        self.check_pages()
    }

    fn is_sent(&mut self, whose: usize, text: &str) -> Result<(), String> {
        if text.starts_with("<enabled") {
            self.clients[whose].places = Some(0);
        }
        if text.starts_with("<resumed") {
            self.is_resumed(whose);
        }
        if !is_stanza(text) {
            return Ok(());
        }
        let connected = &mut self.clients[whose];
        connected.places = connected.places.map(|places| places + 1);
        let place = connected.places;
        connected.is_its_own(text)?;
        if text.contains("<notification ") {
            let id = value(text, " id='").and_then(|id| id.parse().ok());
            return self.notification_is_sent(whose, id.ok_or("a notification without an id")?);
        }
        self.chat_is_sent(whose, text, place)?;
        self.is_told_in_room(whose, text)?;
        if let (Some(place), false) = (place, text.contains("<delay")) {
            let bytes = text.split_once("<body>").and_then(|(_, rest)| rest.split_once("</body>"));
            self.clients[whose].bodies.extend(bytes.map(|(body, _)| (place, body.len())));
        }
        Ok(())
    }

    /// A client resumes its session: it is sent again what it has not received.
    fn is_resumed(&mut self, whose: usize) {
        let h = self.clients[whose].xmpp().map_or(0, XmppClient::handled);
        let connected = &mut self.clients[whose];
        (connected.places, connected.acknowledged) = (Some(h), h);
        connected.bodies.retain(|(place, _)| *place <= h);
        let given = std::mem::take(&mut connected.given);
        let (had, again): (BTreeSet<_>, BTreeSet<_>) =
            given.into_iter().partition(|id| connected.had_notification(&id.to_string()));
        connected.given = had;
        connected.again.extend(again);
        self.takes_back_chats(whose, h);
        self.takes_back_what_was_said(whose);
    }

    /// No more waits for a connection than the bound or, where nothing waited, what is written in one turn.
    fn check_queue(&self, whose: usize) -> Result<(), String> {
        let link = self.world.connection(self.clients[whose].link);
        let most = QUEUE_BYTES_MAX.max(TURN_BYTES_MAX + ELEMENT_BYTES_MAX) + LAST_WORDS_BYTES_MAX;
        let queued = link.queued();
        holds(queued <= most, || format!("{queued} bytes wait for {link:?}"))
    }

    /// No more is kept for a client because it has not acknowledged it than the bounds and one stanza: that one ends its stream.
    fn check_unacknowledged(&mut self, whose: usize) -> Result<(), String> {
        let limits = &self.limits;
        let connected = &mut self.clients[whose];
        let link = self.world.connection(connected.link);
        let (Some(places), Some(_)) = (connected.places, link.dealt_with()) else { return Ok(()) };
        if link.dealt_with() != Some(link.said()) {
            return Ok(());
        }
        let open = places.saturating_sub(connected.acknowledged);
        holds(open <= limits.unacknowledged + 1, || {
            format!("{open} stanzas are unacknowledged on {link:?}")
        })?;
        let acknowledged = connected.acknowledged;
        connected.bodies.retain(|(place, _)| *place > acknowledged);
        let bytes: usize = connected.bodies.iter().map(|(_, bytes)| bytes).sum();
        holds(bytes <= limits.unacknowledged_bytes + ELEMENT_BYTES_MAX, || {
            format!("{bytes} bytes are unacknowledged on {link:?}")
        })
    }

    /// No session has more than one page of each kind under way, and none is larger than what is written in one turn.
    fn check_pages(&self) -> Result<(), String> {
        let mut pages: BTreeMap<(bool, &str), usize> = BTreeMap::new();
        for ask in self.world.disk.under_way() {
            let (is_offline, local, page) = match (Pending::of(ask), Offline::of(ask)) {
                (Some(asked), _) => (false, &*asked.local, asked.page),
                (_, Some(asked)) => (true, &*asked.local, asked.page),
                _ => continue,
            };
            holds(page.bytes <= TURN_BYTES_MAX, || format!("{local} asks for a page of {page:?}"))?;
            *pages.entry((is_offline, local)).or_default() += 1;
        }
        for ((is_offline, local), count) in pages {
            let sessions = self.clients.iter().filter(|client| client.is_of(local)).count();
            // A message that may be stored is looked for by pages, too, of which no session is given anything.
            let looks = if is_offline { self.chats.looks(local) } else { 0 };
            holds(count <= sessions + looks, || format!("{count} pages for {sessions} sessions of {local}"))?;
        }
        Ok(())
    }
}

impl Connected {
    /// What is addressed to somebody is addressed to who gets it. A chat message whose resource did not take it is for the account (RFC
    /// 6121 §8.5.3.2.1).
    fn is_its_own(&self, text: &str) -> Result<(), String> {
        let head = text.split_once('>').map_or(text, |(head, _)| head);
        let (Some(client), Some(to)) = (self.xmpp(), value(head, " to='")) else { return Ok(()) };
        let (bare, resource) = to.split_once('/').map_or((to, None), |(bare, rest)| (bare, Some(rest)));
        let is_account = bare.split('@').next() == Some(&client.account);
        let is_session = resource.is_none() || client.jid.as_deref().is_none_or(|jid| jid == to);
        let is_session = is_session || number(text).is_some();
        holds(is_account && is_session, || format!("{} ({:?}) was sent {text}", client.account, client.jid))
    }
}

//! The clients of a program.

use super::{Client, Connected, DOMAIN, Program};
use crate::sim::client::{Kind, LightClient, XmppClient};
use carillon_wire::Framing;

impl Program {
    /// A client connects and sends all that a login needs.
    pub(super) fn connect(&mut self, account: &str) {
        let is_plain = self.mix.recipe().is_about_topics;
        let is_managed = !is_plain && self.dice.once_in(2);
        let kind = Kind {
            is_managed,
            resumes: is_managed && self.mix.recipe().resumes && self.dice.below(4) > 0,
            sends_receipts: !is_plain && self.dice.once_in(2),
            framing: if !is_plain && self.dice.once_in(4) { Framing::WebSocket } else { Framing::Tcp },
        };
        let client = XmppClient::new(account, DOMAIN, kind);
        let link = self.world.open(kind.framing, true);
        client.login().iter().for_each(|piece| self.world.bytes(link, piece.as_bytes()));
        self.clients.push(Connected::new(link, Client::Xmpp(Box::new(client))));
    }

    /// A client resumes its session over a new connection, whether it has lost the old one or not.
    pub(super) fn returns(&mut self, whose: usize) {
        let Some(Connected { link, client: Client::Xmpp(client), seen_bytes, is_over, .. }) =
            self.clients.get_mut(whose)
        else {
            return;
        };
        if !client.can_return() {
            return;
        }
        self.world.lose(*link);
        *link = self.world.open(client.kind.framing, true);
        (*seen_bytes, *is_over) = (0, false);
        let link = *link;
        client.returns().iter().for_each(|piece| self.world.bytes(link, piece.as_bytes()));
    }

    /// Somebody: mostly one who is connected, and of these mostly one whose session is bound.
    pub(super) fn somebody(&mut self) -> usize {
        let is_bound = |client: &&Connected| client.xmpp().is_some_and(XmppClient::is_bound);
        let wants_bound = self.dice.below(4) > 0;
        let all = self.clients.iter().enumerate().filter(|(_, client)| self.is_open(client));
        let those: Vec<usize> =
            all.filter(|(_, client)| !wants_bound || is_bound(client)).map(|(whose, _)| whose).collect();
        match self.dice.pick(&those) {
            Some(whose) if self.dice.below(8) > 0 => whose,
            _ => self.dice.below(self.clients.len()),
        }
    }

    /// A client of the light protocol connects and follows a topic.
    pub(super) fn connect_light(&mut self, topic: &str) {
        let shard = self.dice.below(self.world.shard_count());
        let link = self.world.open_light(shard);
        let says = [LightClient::OPENING, &LightClient::subscribe(topic)].concat();
        self.world.bytes(link, says.as_bytes());
        self.clients.push(Connected::new(link, Client::Light(LightClient::default())));
    }

    /// A client says something, if its session is bound and its stream open.
    pub(super) fn says(&mut self, whose: usize, what: impl FnOnce(&mut XmppClient) -> String) {
        let Some(Connected { link, client: Client::Xmpp(client), .. }) = self.clients.get_mut(whose) else {
            return;
        };
        if client.is_bound()
            && !client.is_returning
            && !client.is_leaving
            && self.world.connection(*link).is_open()
        {
            let says = what(client);
            self.world.bytes(*link, says.as_bytes());
        }
    }

    /// A client sends presence: it is there, or it is there and asleep. In a mix about topics it does so once.
    pub(super) fn becomes_available(&mut self, whose: usize) {
        let show = match self.mix.recipe().is_about_topics || self.dice.below(4) > 0 {
            true => "",
            false => "<show>away</show>",
        };
        let wants = if self.mix.recipe().wants_to_know { self.wants(whose) } else { String::new() };
        if self.clients.get(whose).and_then(Connected::xmpp).is_some_and(|client| !client.is_available) {
            self.says(whose, |client| client.becomes_available(&format!("{show}{wants}")));
        }
    }

    /// A client withdraws its presence.
    pub(super) fn becomes_unavailable(&mut self, whose: usize) {
        if self.clients.get(whose).and_then(Connected::xmpp).is_some_and(|client| client.is_available) {
            self.says(whose, XmppClient::becomes_unavailable);
        }
    }

    /// A client asks the server for something.
    pub(super) fn requests(&mut self, whose: usize) {
        self.requested += 1;
        let id = format!("p{}", self.requested);
        self.says(whose, |client| client.requests(id));
    }

    /// A client closes its stream.
    pub(super) fn leaves(&mut self, whose: usize) {
        self.says(whose, |client| client.leaves().to_owned());
    }

    /// A client is gone.
    pub(super) fn closes(&mut self, whose: usize) {
        if let Some(connected) = self.clients.get_mut(whose) {
            let link = self.world.connection(connected.link);
            connected.had_all |= link.is_open() && link.queued() + link.on_the_way() == 0;
            self.world.lose(connected.link);
        }
    }

    /// From now on a client reads few bytes, or all again.
    pub(super) fn is_slow(&mut self, whose: usize) {
        let room = if self.dice.once_in(2) { Some(self.dice.below(3000)) } else { None };
        if let Some(connected) = self.clients.get(whose) {
            self.world.has_room(connected.link, room);
        }
    }

    /// Clients hear what has arrived, and answer.
    pub(super) fn clients_hear(&mut self) {
        for Connected { link, client, is_over, .. } in &mut self.clients {
            if *is_over {
                continue;
            }
            while let Some(element) = self.world.received(*link) {
                match client {
                    Client::Xmpp(client) => {
                        for answer in client.hears(&element) {
                            self.world.bytes(*link, answer.as_bytes());
                        }
                    }
                    Client::Light(client) => client.hears(&element),
                }
            }
            *is_over = self.world.connection(*link).is_over();
        }
    }
}

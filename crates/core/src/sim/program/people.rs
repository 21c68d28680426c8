//! The clients of a program.

use super::{Client, Connected, DOMAIN, Program};
use crate::sim::client::{Kind, LightClient, XmppClient};
use carillon_wire::Framing;

impl Program {
    /// A client connects and sends all that a login needs.
    pub(super) fn connect(&mut self, account: &str) {
        let is_plain = self.mix.is_about_topics();
        let kind = Kind {
            is_managed: !is_plain && self.dice.once_in(2),
            sends_receipts: !is_plain && self.dice.once_in(2),
        };
        let client = XmppClient::new(account, DOMAIN, kind);
        let link = self.world.open(Framing::Tcp, true);
        self.world.bytes(link, client.login().as_bytes());
        self.clients.push(Connected { link, client: Client::Xmpp(client), seen_bytes: 0 });
    }

    /// A client of the light protocol connects and follows a topic.
    pub(super) fn connect_light(&mut self, topic: &str) {
        let shard = self.dice.below(self.world.shard_count());
        let link = self.world.open_light(shard);
        let says = [LightClient::OPENING, &LightClient::subscribe(topic)].concat();
        self.world.bytes(link, says.as_bytes());
        self.clients.push(Connected { link, client: Client::Light(LightClient::default()), seen_bytes: 0 });
    }

    /// A client sends initial presence, if it can.
    pub(super) fn becomes_available(&mut self, whose: usize) {
        let Some(Connected { link, client: Client::Xmpp(client), .. }) = self.clients.get_mut(whose) else {
            return;
        };
        if client.is_bound && !client.is_available && self.world.connection(*link).is_open() {
            let presence = client.becomes_available();
            self.world.bytes(*link, presence.as_bytes());
        }
    }

    /// A client is gone.
    pub(super) fn closes(&mut self, whose: usize) {
        if let Some(connected) = self.clients.get(whose) {
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
        for Connected { link, client, .. } in &mut self.clients {
            while let Some(element) = self.world.received(*link) {
                match client {
                    Client::Xmpp(client) => {
                        let answer = client.hears(&element);
                        if !answer.is_empty() {
                            self.world.bytes(*link, answer.as_bytes());
                        }
                    }
                    Client::Light(client) => client.hears(&element),
                }
            }
        }
    }

    /// Everything under way ends, everyone who is connected becomes available, and reads.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        for round in 0..2 {
            for whose in 0..self.clients.len() {
                self.world.has_room(self.clients[whose].link, None);
                if round > 0 {
                    self.becomes_available(whose);
                }
            }
            loop {
                let goes_on = self.world.step(0);
                self.look()?;
                if !goes_on && self.world.choices().is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

//! Tokens (XEP-0484): requested with the password, stored, and used for the next login in one round trip.

use carillon_wire::ns;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::Login;
use super::features::Sasl2Offer;
use super::sasl::encode;
use crate::client::channel::Channel;
use crate::client::outbox::Outbox;
use crate::client::profile::StreamManagement;
use crate::client::sasl::{Mechanism, Token, agent_id};

impl Login {
    /// Proves a token right behind the stream header, if there is one that the connection is good for.
    pub(super) fn begin_with_token(&mut self, channel: &mut Channel, out: &mut Outbox) {
        let Some(token) = self.usable_token() else { return };
        let username = self.options.jid.local().unwrap_or_default();
        let (exchange, message) = token.start(username, self.exporter);
        let mut element = Vec::new();
        let mut writer = Writer::new(&mut element);
        writer
            .start("authenticate")
            .attr("xmlns", ns::SASL2)
            .attr("mechanism", token.mechanism.name())
            .close_start();
        writer.start("initial-response").close_start().text(&encode(&message)).end("initial-response");
        self.write_agent(&mut writer);
        writer.start("fast").attr("xmlns", ns::FAST).attr("count", &token.count.to_string()).close_empty();
        self.write_inline_resume(&mut writer);
        let managed = self.options.profile.settings.stream_management != StreamManagement::Off;
        self.write_bind2(managed, &mut writer);
        writer.end("authenticate");
        channel.write(&element, out);
        self.ahead = Some((token.mechanism, exchange));
    }

    /// Asks for a token, where they are wanted and offered.
    pub(super) fn write_token_request(&self, offered: &Sasl2Offer, writer: &mut Writer<'_>) {
        let mechanism = Mechanism::for_tokens(self.exporter).name();
        if self.options.profile.settings.fast && offered.tokens.iter().any(|name| name == mechanism) {
            self.write_agent(writer);
            writer.start("request-token").attr("xmlns", ns::FAST).attr("mechanism", mechanism).close_empty();
        }
    }

    /// Keeps the token that came with a success, if one did.
    pub(super) fn keep_token(&self, success: &Element) {
        if let Some(secret) = success.child("token", ns::FAST).and_then(|token| token.attr("token")) {
            let mechanism = Mechanism::for_tokens(self.exporter);
            self.options.profile.tokens.put(&self.options.jid, secret.to_owned(), mechanism);
        }
    }

    fn usable_token(&self) -> Option<Token> {
        let profile = &self.options.profile;
        // A client that registers its account waits for that answer first.
        if !profile.settings.fast || self.options.register {
            return None;
        }
        let token = profile.tokens.next_use(&self.options.jid)?;
        (token.mechanism == Mechanism::for_tokens(self.exporter)).then_some(token)
    }

    fn write_agent(&self, writer: &mut Writer<'_>) {
        writer.start("user-agent").attr("id", &agent_id(&self.options.jid)).close_empty();
    }
}

//! Classic SASL (RFC 6120 §6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::ns;
use carillon_wire::xml::Element;

use super::{AuthState, Login, Stage};
use crate::client::channel::Channel;
use crate::client::event::{AuthFailure, ClientEvent, Failure};
use crate::client::outbox::Outbox;
use crate::client::profile::Options;
use crate::client::sasl::{Choice, Exchange, Mechanism, Offer};

impl Login {
    /// Starts the best mechanism of both sides.
    pub(super) fn authenticate(
        &mut self,
        offer: &Offer,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        let choice = self.choose(offer)?;
        let mechanism = choice.mechanism;
        let (exchange, initial) = self.exchange(choice);
        channel.write_element(out, |writer| {
            writer.start("auth").attr("xmlns", ns::SASL).attr("mechanism", mechanism.name()).close_start();
            writer.text(&encode(&initial)).end("auth");
        });
        Ok(Stage::Sasl(mechanism, exchange))
    }

    /// Processes an element of the exchange.
    pub(super) fn sasl(
        &mut self,
        mechanism: Mechanism,
        exchange: Exchange,
        element: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        match element.name() {
            "challenge" => {
                let exchange = self.respond(exchange, element, ns::SASL, channel, out)?;
                Ok(Stage::Sasl(mechanism, exchange))
            }
            "success" => {
                exchange.succeed(&decode(element)?)?;
                out.events.push(ClientEvent::Authenticated { mechanism });
                Ok(self.open(AuthState::Authenticated, channel, out))
            }
            "failure" => Err(failure(element, ns::SASL)),
            other => Err(Stage::Sasl(mechanism, exchange).unexpected(other)),
        }
    }

    /// Chooses one of the offered mechanisms.
    pub(super) fn choose(&self, offer: &Offer) -> Result<Choice, Failure> {
        offer
            .choose(&self.options.profile.settings.mechanisms, self.exporter)
            .ok_or_else(|| Failure::NoMechanism { offered: offer.mechanisms.clone() })
    }

    /// Begins the mechanism's exchange; the second value is the initial response.
    pub(super) fn exchange(&mut self, choice: Choice) -> (Exchange, Vec<u8>) {
        let username = self.options.jid.local().unwrap_or_default();
        Exchange::start(choice, username, &self.options.password, self.entropy.nonce())
    }

    /// Answers the challenge in `element` by a `<response/>` in the same namespace.
    pub(super) fn respond(
        &self,
        exchange: Exchange,
        element: &Element,
        namespace: &str,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Exchange, Failure> {
        let Options { password, profile, .. } = &self.options;
        let (exchange, answer) = exchange.challenge(&decode(element)?, password, &profile.settings.keys)?;
        channel.write_element(out, |writer| {
            writer.start("response").attr("xmlns", namespace).close_start();
            writer.text(&encode(&answer)).end("response");
        });
        Ok(exchange)
    }
}

// RFC 6120 §6.4.2: data of no length is written as "=", to tell it from no data.
pub(super) fn encode(data: &[u8]) -> String {
    if data.is_empty() { "=".to_owned() } else { BASE64.encode(data) }
}

pub(super) fn decode(element: &Element) -> Result<Vec<u8>, Failure> {
    let text = element.text();
    let text = text.trim();
    if text.is_empty() || text == "=" {
        return Ok(Vec::new());
    }
    BASE64
        .decode(text)
        .map_err(|_| Failure::Unexpected { element: element.name().to_owned(), state: "decoding base64" })
}

/// Reads a `<failure/>`; its conditions are in classic SASL's namespace also in SASL2 (XEP-0388 §2.6.2).
pub(super) fn failure(element: &Element, namespace: &str) -> Failure {
    let text = element.child("text", namespace).map(Element::text);
    let condition = element.children().find(|child| child.ns() == ns::SASL && child.name() != "text");
    let condition = condition.map(|child| child.name().to_owned()).unwrap_or_default();
    Failure::Auth(AuthFailure { condition, text })
}

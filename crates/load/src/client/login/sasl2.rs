//! SASL2 (XEP-0388) with Bind 2 (XEP-0386): authentication, resource and stream management in one round trip.

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::features::Sasl2Offer;
use super::sasl::{decode, encode, failure};
use super::{AuthState, Login, Stage, Transition};
use crate::client::channel::Channel;
use crate::client::event::{ClientEvent, Failure};
use crate::client::management::{Management, write_enable};
use crate::client::outbox::Outbox;
use crate::client::sasl::{Exchange, Mechanism};
use crate::client::session::Session;

impl Login {
    /// Starts the best mechanism of both sides, with all inline requests.
    pub(super) fn authenticate2(
        &mut self,
        offered: &Sasl2Offer,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        let choice = self.choose(&offered.offer)?;
        let mechanism = choice.mechanism;
        let (exchange, initial) = self.exchange(choice);
        channel.write_element(out, |writer| {
            writer
                .start("authenticate")
                .attr("xmlns", ns::SASL2)
                .attr("mechanism", mechanism.name())
                .close_start();
            writer.start("initial-response").close_start().text(&encode(&initial)).end("initial-response");
            self.write_token_request(offered, writer);
            if offered.inline_resumption {
                self.write_inline_resume(writer);
            }
            // Without a resource the stream can be resumed after authentication.
            if offered.inline_resumption || !self.resumes() {
                self.write_bind2(offered.inline_stream_management, writer);
            }
            writer.end("authenticate");
        });
        Ok(Stage::Sasl2(mechanism, exchange))
    }

    /// Processes an element of the exchange.
    pub(super) fn sasl2(
        &mut self,
        mechanism: Mechanism,
        exchange: Exchange,
        element: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Transition, Failure> {
        match element.name() {
            "challenge" => {
                let exchange = self.respond(exchange, element, ns::SASL2, channel, out)?;
                Ok(Transition::Stage(Stage::Sasl2(mechanism, exchange)))
            }
            "success" => {
                let proof = element.child("additional-data", ns::SASL2).map(decode).transpose()?;
                exchange.succeed(&proof.unwrap_or_default())?;
                self.keep_token(element);
                out.events.push(ClientEvent::Authenticated { mechanism });
                self.succeeded2(element, channel, out)
            }
            "failure" => match self.fallback.take() {
                Some(offered) => {
                    self.options.profile.tokens.forget(&self.options.jid);
                    if self.options.password.is_empty() {
                        return Err(failure(element, ns::SASL2));
                    }
                    self.authenticate2(&offered, channel, out).map(Transition::Stage)
                }
                None => Err(failure(element, ns::SASL2)),
            },
            "continue" => Err(Failure::NotOffered("a login without further tasks")),
            other => Err(Stage::Sasl2(mechanism, exchange).unexpected(other)),
        }
    }

    /// What comes after a success: the resumed stream, a new session, or the request for one of them.
    fn succeeded2(
        &mut self,
        success: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Transition, Failure> {
        if let Some(resumed) = success.child("resumed", ns::SM) {
            return self.resumed(resumed, channel, out).map(Transition::Session);
        }
        let failed = success.child("failed", ns::SM);
        let bound = success.child("bound", ns::BIND2);
        if failed.is_some() || bound.is_some() {
            self.not_resumed(failed, out);
        }
        match bound {
            Some(bound) => self.bound2(success, bound, channel, out).map(Transition::Session),
            // The stream is not opened anew after SASL2, yet new features follow (XEP-0388 §2.6.1).
            None => Ok(Transition::Stage(Stage::Features(AuthState::Authenticated))),
        }
    }

    pub(super) fn write_bind2(&self, management: bool, writer: &mut Writer<'_>) {
        let settings = &self.options.profile.settings;
        writer.start("bind").attr("xmlns", ns::BIND2).close_start();
        if let Some(tag) = &self.options.resource {
            writer.start("tag").close_start().text(tag).end("tag");
        }
        if management {
            write_enable(settings.stream_management, writer);
        }
        writer.end("bind");
    }

    fn bound2(
        &self,
        success: &Element,
        bound: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Session, Failure> {
        let identifier = success.child("authorization-identifier", ns::SASL2).map(Element::text);
        let jid = identifier.as_deref().and_then(|text| Jid::new(text.trim()).ok());
        let jid = jid.ok_or(Failure::NotOffered("an address after Bind 2"))?;
        let wanted = self.options.profile.settings.stream_management;
        let management = bound
            .children()
            .find(|child| child.ns() == ns::SM)
            .map_or(Management::Off, |answer| Management::answered(answer, &jid, wanted.queue(), out));
        Ok(Session::begin(jid, management, &self.options, channel, out))
    }
}

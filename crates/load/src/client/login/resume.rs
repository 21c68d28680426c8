//! Resumption of an earlier stream (XEP-0198 §5): by itself after authentication, or along with SASL2.

use carillon_wire::ns;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::features::Features;
use super::{Login, Stage, Transition};
use crate::client::channel::Channel;
use crate::client::event::{ClientEvent, Failure};
use crate::client::management::condition;
use crate::client::outbox::Outbox;
use crate::client::resumable::Resumable;
use crate::client::session::Session;

impl Login {
    /// Takes the state of the earlier stream; the login goes on without it.
    pub(in crate::client) fn take_resumable(&mut self) -> Option<Box<Resumable>> {
        self.resumable.take()
    }

    /// Whether there is an earlier stream to be resumed.
    pub(super) fn resumes(&self) -> bool {
        self.resumable.is_some()
    }

    /// Requests the resumption, if there is something to resume, or else a resource.
    pub(super) fn resume_or_bind(
        &mut self,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        match &self.resumable {
            Some(resumable) if offered.stream_management => {
                channel.write_element(out, |writer| resumable.write_request(writer));
                Ok(Stage::Resume(offered))
            }
            Some(_) => {
                self.not_resumed(None, out);
                self.bind(offered, channel, out)
            }
            None => self.bind(offered, channel, out),
        }
    }

    /// Writes the request along with SASL2, if there is something to resume.
    pub(super) fn write_inline_resume(&self, writer: &mut Writer<'_>) {
        if let Some(resumable) = &self.resumable {
            resumable.write_request(writer);
        }
    }

    /// Processes the answer to a request of its own.
    pub(super) fn resume_answered(
        &mut self,
        answer: &Element,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Transition, Failure> {
        if answer.is("resumed", ns::SM) {
            return self.resumed(answer, channel, out).map(Transition::Session);
        }
        if answer.is("failed", ns::SM) {
            self.not_resumed(Some(answer), out);
            // XEP-0198 §5: the client may bind a resource on the same stream.
            return self.bind(offered, channel, out).map(Transition::Stage);
        }
        Err(Stage::Resume(offered).unexpected(answer.name()))
    }

    /// The stream is resumed.
    pub(super) fn resumed(
        &mut self,
        answer: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Session, Failure> {
        let unexpected = || Failure::Unexpected { element: "resumed".to_owned(), state: "resuming" };
        let resumable = self.resumable.as_mut().ok_or_else(unexpected)?;
        resumable.resumed(answer).ok_or_else(unexpected)??;
        let resumable = self.resumable.take().ok_or_else(unexpected)?;
        Ok(Session::resume(resumable, &self.options, channel, out))
    }

    /// The stream is not resumed, because of the server's `<failed/>` or because it does not know resumption. Does nothing if
    /// there was nothing to resume.
    pub(super) fn not_resumed(&mut self, answer: Option<&Element>, out: &mut Outbox) {
        if let Some(resumable) = self.resumable.take() {
            let condition = answer.map_or_else(|| "not-offered".to_owned(), condition);
            let (handled, unhandled) = resumable.failed(answer);
            out.events.push(ClientEvent::NotResumed { condition, handled, unhandled });
        }
    }
}

//! The forms of what `wire` has. It knows nothing of them: what is read goes through the checks that a client's bytes go through, so
//! that no value comes to be which they would refuse.

use super::{Form, Malformed, Reader, Writer};
use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::frame::game::{EndReason, Mode, SeatState};
use carillon_wire::frame::tcp::StreamState;
use carillon_wire::jid::{AccountJid, BareJid, Jid, JidError};
use carillon_wire::stanza::{IqType, Kind, MessageType, Payload, PresenceType, SharedStanza, Stanza};

crate::form! { enum Framing { 0 = Tcp, 1 = WebSocket } }
crate::form! { enum StreamState { 0 = BeforeHeader, 1 = Open { header_name }, 2 = Closed } }
crate::form! { struct Stanza { kind, to, from, id, lang, payload } }
crate::form! { enum Kind { 0 = Message(of), 1 = Presence(of), 2 = Iq(of) } }
crate::form! { enum MessageType { 0 = Normal, 1 = Chat, 2 = Headline, 3 = Groupchat, 4 = Error } }
crate::form! {
    enum PresenceType {
        0 = Available,
        1 = Unavailable,
        2 = Subscribe,
        3 = Subscribed,
        4 = Unsubscribe,
        5 = Unsubscribed,
        6 = Probe,
        7 = Error,
    }
}
crate::form! { enum Mode { 0 = Relay, 1 = Lockstep, 2 = Authoritative } }
crate::form! { enum SeatState { 0 = Away, 1 = Here, 2 = Left } }
crate::form! {
    enum EndReason { 0 = Finished, 1 = Forfeit, 2 = Duration, 3 = NotJoined, 4 = Shutdown, 5 = Module }
}
crate::form! { enum IqType { 0 = Get, 1 = Set, 2 = Result, 3 = Error } }

// As the stanza that it is.
impl Form for SharedStanza {
    fn write(&self, out: &mut Writer) {
        Form::write(self.stanza(), out);
    }

    fn read(input: &mut Reader<'_>) -> Result<SharedStanza, Malformed> {
        Stanza::read(input).map(SharedStanza::new)
    }
}

impl Form for Jid {
    fn write(&self, out: &mut Writer) {
        out.string(self.as_str().as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Result<Jid, Malformed> {
        address(input, Jid::new)
    }
}

impl Form for BareJid {
    fn write(&self, out: &mut Writer) {
        out.string(self.as_str().as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Result<BareJid, Malformed> {
        address(input, BareJid::new)
    }
}

impl Form for AccountJid {
    fn write(&self, out: &mut Writer) {
        self.to_bare().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<AccountJid, Malformed> {
        let at = input.position();
        let account = AccountJid::of(BareJid::read(input)?);
        account.ok_or(Malformed { at, what: "the address of an account has no local part" })
    }
}

/// Reads an address, which was prepared before it was written.
fn address<J: AsRef<str>>(
    input: &mut Reader<'_>,
    new: impl Fn(&str) -> Result<J, JidError>,
) -> Result<J, Malformed> {
    let at = input.position();
    let text = input.text()?;
    let jid = new(text).ok().filter(|jid| jid.as_ref() == text);
    jid.ok_or(Malformed { at, what: "a text is not a prepared address" })
}

impl Form for Payload {
    fn write(&self, out: &mut Writer) {
        self.bytes().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Payload, Malformed> {
        let at = input.position();
        Payload::parse(Bytes::read(input)?)
            .map_err(|_| Malformed { at, what: "the content of a stanza is not well-formed" })
    }
}

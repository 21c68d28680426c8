//! Our end of the stream is closed: a stream error or `</stream:stream>` was sent, and the server closes the connection when that
//! has left.

use super::Session;
use crate::Effect;
use crate::connection::Io;
use crate::error::StreamError;
use crate::model::Farewell;
use crate::session::Cx;
use carillon_wire::ns;
use carillon_wire::stream::{self, Condition};
use carillon_wire::xml::Element;

/// Our end of the stream is closed. What the client still sends is ignored.
#[derive(Debug)]
pub struct Closing {
    pub(super) io: Io,
}

impl Closing {
    /// Answers the peer's `</stream:stream>` with ours and closes.
    pub fn politely(io: Io, cx: &mut Cx<'_>) -> Session {
        write_close(&io, cx);
        Closing::at_once(io, cx)
    }

    /// Sends the error in a stream that is open, closes it, and waits for the peer's end (RFC 6120 §4.9.1.1).
    pub fn with_error(io: Io, error: &StreamError, cx: &mut Cx<'_>) -> Session {
        cx.shard.counters.stream_errors.count(error.condition.as_str());
        let text = (!error.text.is_empty()).then_some(&*error.text);
        cx.out.send(io.conn, |out| match &error.other_host {
            Some(host) => stream::write_see_other_host(out, host, io.framing),
            None => {
                stream::write_error(out, error.condition, text, error.specific.as_deref(), io.framing);
            }
        });
        write_close(&io, cx);
        // A peer that broke the rules is not asked for good manners: close as soon as this has left.
        Closing::at_once(io, cx)
    }

    /// Sends the error in a stream whose header was not answered yet: our header goes first (RFC 6120 §4.9.1.2).
    pub fn with_error_after_header(io: Io, error: &StreamError, cx: &mut Cx<'_>) -> Session {
        let id = cx.shard.random.token();
        let from = cx.shard.domains.iter().next().map(|d| d.name.clone());
        io.send_header(from.as_deref().unwrap_or("localhost"), &id, cx);
        Closing::with_error(io, error, cx)
    }

    /// Closes without sending anything.
    pub fn at_once(io: Io, cx: &mut Cx<'_>) -> Session {
        cx.out.push(Effect::Close { conn: io.conn });
        Session::Closing(Box::new(Closing { io }))
    }
}

/// What whoever is ended by a drain is told. `random` gives a number up to the one that it is given.
pub(crate) fn farewell(farewell: &Farewell, random: impl FnOnce(u32) -> u32) -> StreamError {
    let shutdown = || StreamError::new(Condition::SystemShutdown, "the server is shutting down");
    match farewell {
        Farewell::Shutdown => shutdown(),
        Farewell::SeeOtherHost(host) => StreamError {
            other_host: Some(host.as_str().into()),
            ..StreamError::new(Condition::SeeOtherHost, "")
        },
        Farewell::Restart { least_s, spread_s } => {
            let seconds = least_s.saturating_add(random(*spread_s)).to_string();
            shutdown().with(Element::new("retry-after", ns::RETRY).with_attr("seconds", seconds))
        }
    }
}

fn write_close(io: &Io, cx: &mut Cx<'_>) {
    cx.out.send(io.conn, |out| stream::write_close(out, io.framing));
}

//! `<success/>`, behind which a new stream begins (RFC 6120 §6.4.6).

use super::Restarting;
use crate::connection::Client;
use crate::sasl;
use crate::session::auth::proven::Proved;
use crate::session::{Cx, Session};
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// Tells the client of its success.
pub(in crate::session::auth) fn succeed(mut client: Client, mut proved: Proved, cx: &mut Cx<'_>) -> Session {
    let success = Element::new("success", ns::SASL);
    let success = match proved.data.take() {
        Some(data) => success.with_text(sasl::encode(&data)),
        None => success,
    };
    let authenticated = proved.authenticated(&mut client, cx);
    let mut io = client.io;
    io.send_element(&success, cx);
    io.reader.restart();
    Session::Restarting(Box::new(Restarting { io, authenticated }))
}

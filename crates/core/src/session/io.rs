//! Writing to a connection.

use crate::connection::Io;
use crate::session::Cx;
use carillon_wire::Framing;
use carillon_wire::stanza::Stanza;
use carillon_wire::stream;
use carillon_wire::xml::Element;

impl Io {
    /// Writes an element that is no stanza. On WebSocket the `stream` prefix is not declared by a header, and the
    /// default namespace is none, so the element declares all it needs.
    pub fn send_element(&self, element: &Element, cx: &mut Cx<'_>) {
        cx.out.send(self.conn, |out| element.write(out, self.framing.default_ns()));
    }

    /// Writes a stanza as it is, past every hook: for replies before the session is bound.
    pub fn send_stanza(&self, stanza: &Stanza, cx: &mut Cx<'_>) {
        cx.out.send(self.conn, |out| stanza.write(out, self.framing));
    }

    /// Writes our stream header.
    pub fn send_header(&self, from: &str, id: &str, cx: &mut Cx<'_>) {
        let header = stream::HeaderOut { from: Some(from), to: None, id: Some(id), lang: Some("en") };
        cx.out.send(self.conn, |out| match self.framing {
            Framing::Tcp => stream::write_header(out, &header),
            Framing::WebSocket => stream::write_open(out, &header),
        });
    }

    /// Writes `<stream:features/>`.
    pub fn send_features(&self, features: &[Element], cx: &mut Cx<'_>) {
        cx.out.send(self.conn, |out| stream::write_features(out, features, self.framing));
    }
}

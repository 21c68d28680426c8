//! The canned dialogue: what is answered to a piece of text, found by searching it. Nothing is parsed.

/// What a piece of a stream is, as far as the floor cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A stream header.
    Header,
    /// A request for TLS.
    StartTls,
    /// A SASL request.
    Auth,
    /// A request to bind a resource.
    Bind,
    /// A published item.
    Publish,
    /// Another request.
    Request,
    /// A message to somebody.
    Message,
    /// The end of the stream.
    Close,
    /// Anything else.
    Other,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// In the clear.
    Clear,
    /// Inside TLS.
    Secure,
    /// Somebody.
    Known,
    /// With a resource: items are for it.
    Bound,
}

/// The length of the first unit of `text` and what it is; `None` while it is incomplete.
pub(crate) fn first(text: &[u8]) -> Option<(usize, Said)> {
    let space = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let rest = &text[space..];
    if rest.starts_with(b"<?xml") || rest.starts_with(b"<stream:stream") {
        let tag = find(rest, b"<stream:stream")?;
        return Some((space + tag + end_of_tag(&rest[tag..])?, Said::Header));
    }
    if rest.starts_with(b"</stream") {
        return Some((space + end_of_tag(rest)?, Said::Close));
    }
    let tag = end_of_tag(rest)?;
    if rest[tag - 2] == b'/' {
        return Some((space + tag, kind(&rest[..tag])));
    }
    let name = rest[1..].iter().position(|b| b.is_ascii_whitespace() || matches!(b, b'>' | b'/'))? + 1;
    let mut close = Vec::with_capacity(name + 2);
    close.extend_from_slice(b"</");
    close.extend_from_slice(&rest[1..name]);
    close.push(b'>');
    let end = find(rest, &close)? + close.len();
    Some((space + end, kind(&rest[..end])))
}

fn kind(unit: &[u8]) -> Said {
    let has = |what: &[u8]| find(unit, what).is_some();
    match unit {
        _ if unit.starts_with(b"<starttls") => Said::StartTls,
        _ if unit.starts_with(b"<auth") => Said::Auth,
        _ if unit.starts_with(b"<iq") && has(b"xmpp-bind") => Said::Bind,
        _ if unit.starts_with(b"<iq") && has(b"<publish") => Said::Publish,
        _ if unit.starts_with(b"<iq") && !has(b"result") => Said::Request,
        _ if unit.starts_with(b"<message") => Said::Message,
        _ => Said::Other,
    }
}

/// The stream header of a server and its features at a stage.
pub(crate) fn features(stage: Stage) -> &'static [u8] {
    match stage {
        Stage::Clear => {
            b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='1' \
              from='localhost' version='1.0'><stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'>\
              <required/></starttls></stream:features>"
        }
        Stage::Secure => {
            b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='2' \
              from='localhost' version='1.0'><stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
              <mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        }
        Stage::Known | Stage::Bound => {
            b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='3' \
              from='localhost' version='1.0'><stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\
              </stream:features>"
        }
    }
}

/// Begins TLS.
pub(crate) const PROCEED: &[u8] = b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";
/// Lets somebody in.
pub(crate) const SUCCESS: &[u8] = b"<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>";
/// Ends a stream.
pub(crate) const CLOSE: &[u8] = b"</stream:stream>";

/// The result of a request with this id; a service says it is one for pubsub, whoever asks.
pub(crate) fn result(id: &[u8], jid: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<iq type='result' id='");
    out.extend_from_slice(id);
    match jid {
        Some(jid) => {
            out.extend_from_slice(b"'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>");
            out.extend_from_slice(jid);
            out.extend_from_slice(b"</jid></bind></iq>");
        }
        None => out.extend_from_slice(
            b"'><query xmlns='http://jabber.org/protocol/disco#info'><identity category='pubsub' type='service'/>\
              <feature var='http://jabber.org/protocol/pubsub'/></query></iq>",
        ),
    }
}

/// The event that carries what was published: the text before the recipient's name, and the text after it.
pub(crate) fn event(publish: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let item = find(publish, b"<item").unwrap_or(0);
    let end = find(publish, b"</publish").unwrap_or(publish.len());
    let before = b"<message from='pubsub.localhost' type='headline' to='".to_vec();
    let mut after = b"'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='".to_vec();
    after.extend_from_slice(attribute(publish, b"node=").unwrap_or_default());
    after.extend_from_slice(b"'>");
    after.extend_from_slice(&publish[item.min(end)..end]);
    after.extend_from_slice(b"</items></event></message>");
    (before, after)
}

/// The value of the first attribute written as `name` (which ends in `=`).
pub(crate) fn attribute<'a>(unit: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut spaced = vec![b' '];
    spaced.extend_from_slice(name);
    let start = find(unit, &spaced)? + spaced.len();
    let quote = *unit.get(start)?;
    let value = &unit[start + 1..];
    Some(&value[..value.iter().position(|b| *b == quote)?])
}

/// What stands between two pieces of text.
pub(crate) fn between<'a>(text: &'a [u8], before: &[u8], after: &[u8]) -> Option<&'a [u8]> {
    let rest = &text[find(text, before)? + before.len()..];
    Some(&rest[..find(rest, after)?])
}

/// One past the first `>`.
fn end_of_tag(text: &[u8]) -> Option<usize> {
    Some(text.iter().position(|b| *b == b'>')? + 1)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_and_known() {
        let said = |text: &str| first(text.as_bytes());
        assert_eq!(said("<?xml version='1.0'?><stream:stream to='x'>"), Some((43, Said::Header)));
        assert_eq!(said("<starttls xmlns='urn'/>"), Some((23, Said::StartTls)));
        assert_eq!(said("<iq type='get' id='1'><ping/></i"), None);
        assert_eq!(said("<message to='u1@x'><body>b</body></message><p"), Some((43, Said::Message)));
        assert_eq!(said(" </stream:stream>"), Some((17, Said::Close)));
    }

    #[test]
    fn an_event_carries_the_item() {
        let publish =
            b"<iq id='p'><pubsub><publish node='n'><item id='1'><a/></item></publish></pubsub></iq>";
        let (before, after) = event(publish);
        let whole = [before, b"u1@x".to_vec(), after].concat();
        assert_eq!(
            String::from_utf8(whole).expect("it is text"),
            "<message from='pubsub.localhost' type='headline' to='u1@x'>\
             <event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='1'><a/></item></items>\
             </event></message>"
        );
        assert_eq!(attribute(publish, b"id="), Some(&b"p"[..]));
    }
}

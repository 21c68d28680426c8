"""Streams that break the rules (RFC 6120 §4.9, §6.5, §8.3.3, §11). Each ends, or is answered, as the RFC names it; a
session that was there before and is there after notices nothing."""

import asyncio
import base64

import pytest

from harness.inbox import deadline
from harness.peer import Peer
from harness.raw import CLIENT, STARTTLS, STREAM, TLS, auth, header, plain
from harness.server import unique

XML_ERRORS = {
    "mismatched tag": ("<message><body>x</message></message>", "not-well-formed"),
    "attribute without quotes": ("<message to=bob/>", "not-well-formed"),
    "attribute twice": ("<message id='1' id='2'/>", "not-well-formed"),
    "name that is none": ("<1message/>", "not-well-formed"),
    "less-than in attribute": ("<message id='<'/>", "not-well-formed"),
    "lone ampersand": ("<message><body>a & b</body></message>", "not-well-formed"),
    "control character": ("<message><body>\x01</body></message>", "not-well-formed"),
    "character reference to none": ("<message><body>&#0;</body></message>", "not-well-formed"),
    "end of CDATA in text": ("<message><body>]]></body></message>", "not-well-formed"),
    "undeclared prefix": ("<message><x:body>x</x:body></message>", "not-well-formed"),
    "undeclared prefix of an attribute": ("<message x:id='1'/>", "not-well-formed"),
    "document type": ("<!DOCTYPE x [<!ENTITY a 'b'>]><message/>", "restricted-xml"),
    "entity of one's own": ("<message><body>&lol;</body></message>", "restricted-xml"),
    "processing instruction": ("<?php exit ?><message/>", "restricted-xml"),
    "XML declaration inside the stream": ("<?xml version='1.0'?><message/>", "restricted-xml"),
    "comment": ("<!-- hello --><message/>", "restricted-xml"),
    "comment inside a stanza": ("<message><body>a<!-- b -->c</body></message>", "restricted-xml"),
    "text between stanzas": ("hello?<message/>", "bad-format"),
    "invalid UTF-8": (b"<message><body>\xff\xfe</body></message>", "unsupported-encoding"),
    "overlong UTF-8": (b"<message><body>\xc0\xaf</body></message>", "unsupported-encoding"),
    "a surrogate in UTF-8": (b"<message><body>\xed\xa0\x80</body></message>", "unsupported-encoding"),
    "too deep": ("<message>" + "<x>" * 200 + "</x>" * 200 + "</message>", "policy-violation"),
    "too many attributes": (
        "<message " + " ".join(f"a{i}='1'" for i in range(2000)) + "/>",
        "policy-violation",
    ),
    "unknown top-level element": ("<hello xmlns='urn:example:hello'/>", "unsupported-stanza-type"),
    "stanza in another namespace": ("<message xmlns='urn:example:hello'/>", "unsupported-stanza-type"),
}


@pytest.fixture(autouse=True)
async def neighbour(server, account):
    """A session next door: there before, and at work after."""
    jid = await account("neighbour")
    peer = await Peer.connect(server, jid)
    yield peer
    await peer.ping()
    peer.chat(peer.bare, "still here")
    await peer.message("still here")
    assert server.is_running()
    await peer.close()


@pytest.mark.parametrize("what", XML_ERRORS)
async def test_bad_xml_in_a_session(raw, account, what):
    xml, condition = XML_ERRORS[what]
    stream = await raw.logged_in(await account())
    stream.send(xml)
    await stream.stream_error(condition)


@pytest.mark.parametrize("what", XML_ERRORS)
async def test_bad_xml_before_authentication(raw, what):
    xml, condition = XML_ERRORS[what]
    stream = await raw.secured()
    stream.send(xml)
    # An element that no session knows is not looked at so early.
    await stream.stream_error("not-authorized" if what == "unknown top-level element" else condition)


async def test_a_mismatched_tag_is_found_before_the_next_stanza(raw, account):
    stream = await raw.logged_in(await account())
    stream.send("<message><body>x</message><presence/>")
    async with asyncio.timeout(3):
        await stream.stream_error("not-well-formed")


@pytest.mark.parametrize("what", XML_ERRORS)
async def test_bad_xml_cut_into_single_bytes(raw, account, what):
    """The verdict does not depend on how the bytes arrive."""
    xml, condition = XML_ERRORS[what]
    stream = await raw.logged_in(await account())
    data = xml if isinstance(xml, bytes) else xml.encode()
    for i in range(0, min(len(data), 300)):
        stream.send(data[i : i + 1])
        await stream.writer.drain()
    stream.send(data[300:])
    await stream.stream_error(condition)


async def test_oversized_stanza_in_a_session(raw, account):
    stream = await raw.logged_in(await account())
    stream.send("<message><body>" + "a" * 300_000 + "</body></message>")
    await stream.stream_error("policy-violation")


async def test_a_large_stanza_within_the_bound_passes(raw, account, peer):
    bob = await peer()
    stream = await raw.logged_in(await account())
    body = "b" * 200_000
    stream.send(f"<message to='{bob.bare}' type='chat'><body>{body}</body></message>")
    await bob.message(body)


async def test_oversized_element_before_authentication(raw):
    stream = await raw.secured()
    stream.send(auth("PLAIN", "A" * 20_000))
    await stream.stream_error("policy-violation")


async def test_an_element_that_never_ends(raw, account):
    stream = await raw.logged_in(await account())
    stream.send("<message to='")
    for _ in range(40):
        stream.send("a" * 10_000)
    await stream.stream_error("policy-violation")


async def test_oversized_header(raw):
    stream = await raw.connect()
    stream.send(header(extra=" x='" + "a" * 20_000 + "'"))
    await stream.stream_error("policy-violation")


HEADERS = {
    "unknown domain": (header("elsewhere.example"), "host-unknown"),
    "no domain": (header(None), "host-unknown"),
    "domain that is none": (header("a b"), "improper-addressing"),
    "version before 1.0": (header(version=None), "unsupported-version"),
    "version that is none": (header(version="one"), "unsupported-version"),
    "content of servers": (header().replace("jabber:client", "jabber:server"), "invalid-namespace"),
    "another streams namespace": (header().replace("etherx.jabber.org/streams", "example.org/s"), "invalid-namespace"),
    "no prefix": (
        "<stream xmlns='http://etherx.jabber.org/streams' to='localhost' version='1.0'>",
        "bad-namespace-prefix",
    ),
    "document type first": ("<!DOCTYPE x><stream:stream>", "restricted-xml"),
    "another encoding": (header().replace("?>", " encoding='ISO-8859-1'?>"), "unsupported-encoding"),
    "not XML at all": ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "bad-format"),
    "invalid UTF-8": (b"<stream:stream to='\xff'>", "unsupported-encoding"),
}


@pytest.mark.parametrize("what", HEADERS)
async def test_bad_stream_header(raw, what):
    first, condition = HEADERS[what]
    stream = await raw.connect()
    stream.send(first)
    await stream.stream_error(condition)


@pytest.mark.parametrize("what", HEADERS)
async def test_bad_stream_header_under_tls(raw, what):
    first, condition = HEADERS[what]
    stream = await raw.connect("c2s_tls")
    stream.send(first)
    await stream.stream_error(condition)


async def test_login_before_starttls(raw):
    stream = await raw.connect()
    await stream.begin()
    stream.send(auth("PLAIN", plain("alice")))
    await stream.stream_error("policy-violation")


async def test_starttls_injection(raw):
    """CVE-2011-0411: what follows `<starttls/>` in the clear must not be taken for what TLS protects."""
    stream = await raw.connect()
    await stream.begin()
    stream.send(STARTTLS + header() + auth("PLAIN", plain("alice")))
    assert (await stream.element()).tag == TLS + "failure"
    await stream.stream_error("policy-violation")


@pytest.mark.parametrize(("before", "after"), [("\n", ""), ("", " \r\n"), ("\t", "\n\n")])
async def test_white_space_after_starttls(raw, before, after):
    """It is passed over with `<starttls/>` and also when it comes late, and no more than white space is."""
    stream = await raw.connect()
    await stream.begin()
    stream.send(STARTTLS + before)
    assert (await stream.element()).tag == TLS + "proceed"
    stream.send(after)
    async with deadline("the TLS handshake"):
        await stream.writer.start_tls(stream.server.tls(), server_hostname="localhost")
    features = await stream.begin()
    assert features.find("{urn:ietf:params:xml:ns:xmpp-sasl}mechanisms") is not None


async def test_starttls_twice(raw):
    stream = await raw.connect()
    await stream.begin()
    await stream.starttls()
    await stream.begin()
    stream.send(STARTTLS)
    await stream.stream_error("not-authorized")


async def test_garbage_instead_of_tls(raw):
    stream = await raw.connect()
    await stream.begin()
    stream.send(STARTTLS)
    assert (await stream.element()).tag == TLS + "proceed"
    stream.send(b"this is no ClientHello at all\n" * 20)
    async with asyncio.timeout(20):
        left = await stream.reader.read()
    # An alert at most (RFC 8446 §6), and the end.
    assert left == b"" or left[0] == 21


async def test_plain_text_at_the_port_of_direct_tls(server):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("c2s_tls"))
    writer.write(header().encode())
    async with asyncio.timeout(20):
        left = await reader.read()
    assert left == b"" or left[0] == 21
    writer.close()


@pytest.mark.parametrize("stanza", ["message", "presence", "iq"])
async def test_stanza_before_authentication(raw, account, stanza):
    stream = await raw.secured()
    stream.send(f"<{stanza} to='{await account()}' type='get' id='1'><x xmlns='urn:x'/></{stanza}>")
    await stream.stream_error("not-authorized")


async def test_stanza_before_binding(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    stream.send(auth("PLAIN", plain(user)))
    await stream.element()
    await stream.begin()
    stream.send("<message id='early' to='x@localhost'><body>x</body></message>")
    await stream.stream_error("not-authorized")


SASL_ERRORS = {
    "wrong base64": (auth("PLAIN", "!!!"), "incorrect-encoding"),
    "base64 without its end": (auth("PLAIN", "AAA"), "incorrect-encoding"),
    "PLAIN without NUL": (auth("PLAIN", base64.b64encode(b"alice").decode()), "malformed-request"),
    "PLAIN that is not UTF-8": (auth("PLAIN", base64.b64encode(b"\0\xff\0secret").decode()), "malformed-request"),
    "unknown mechanism": (auth("KERBEROS_V4", "="), "invalid-mechanism"),
    "mechanism without a name": ("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>", "invalid-mechanism"),
    "another's authorization identity": (
        auth("PLAIN", base64.b64encode(b"bob@localhost\0alice\0secret").decode()),
        "invalid-authzid",
    ),
    "SCRAM that is none": (auth("SCRAM-SHA-256", base64.b64encode(b"hello").decode()), "malformed-request"),
    "response to nothing": ("<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AA==</response>", "malformed-request"),
    "abort of nothing": ("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>", "aborted"),
}


@pytest.mark.parametrize("what", SASL_ERRORS)
async def test_bad_sasl_and_the_right_one_after_it(raw, account, what):
    first, condition = SASL_ERRORS[what]
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    stream.send(first)
    await stream.failure(condition)
    await stream.log_in(user)


async def test_unknown_account_and_wrong_password_look_the_same(raw, account):
    known = (await account()).partition("@")[0]
    for user in (known, unique("nobody")):
        stream = await raw.secured()
        stream.send(auth("PLAIN", plain(user, "wrong")))
        await stream.failure("not-authorized")


async def test_invalid_jid_in_a_stanza(raw, account):
    stream = await raw.logged_in(await account())
    for i, to in enumerate(
        ["a@b@c", "@localhost", "localhost/", "a b@localhost", "x@" + "y" * 1100, "&#x2028;@localhost"]
    ):
        stream.send(f"<message id='{i}' to='{to}' type='chat'><body>x</body></message>")
        await stream.stanza_error("jid-malformed", str(i))
    await stream.ping()


async def test_invalid_resource_at_binding(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    stream.send(auth("PLAIN", plain(user)))
    await stream.element()
    await stream.begin()
    for id, resource in (("long", "r" * 1100), ("control", "a&#x7f;b")):
        stream.send(
            f"<iq type='set' id='{id}'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            f"<resource>{resource}</resource></bind></iq>"
        )
        await stream.stanza_error("bad-request", id)
    stream.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
    answer = await stream.until(lambda e: e.get("id") == "b")
    assert answer.get("type") == "result"


IQS = {
    "no type": "<iq id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
    "unknown type": "<iq type='what' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
    "nothing asked": "<iq type='get' id='1'/>",
    "two questions": "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/><ping xmlns='urn:xmpp:ping'/></iq>",
}


@pytest.mark.parametrize("what", IQS)
async def test_bad_iq(raw, account, what):
    stream = await raw.logged_in(await account())
    stream.send(IQS[what])
    await stream.stanza_error("bad-request", "1")
    await stream.ping()


async def test_an_iq_without_id_does_no_harm(raw, account):
    # RFC 6120 §8.2.3 demands an id; an answer without one would reach nobody.
    stream = await raw.logged_in(await account())
    stream.send("<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>")
    await stream.ping()


async def test_white_space_between_stanzas_is_a_keepalive(raw, account):
    stream = await raw.logged_in(await account())
    stream.send(" \n\t" * 2000)
    await stream.ping()


async def test_a_cut_connection_in_the_middle_of_a_stanza(raw, account, peer, api):
    jid = await account()
    stream = await raw.logged_in(jid)
    watcher = await peer(f"{jid}/watcher")
    await watcher.presence(stream.jid)
    stream.send(f"<message to='{jid}' type='chat'><body>never fini")
    stream.reset()
    await watcher.presence(stream.jid, "unavailable")
    assert not watcher.messages.left()


async def test_a_half_closed_connection_still_gets_its_answers(raw, account):
    """The client closes its side only: what it asked is answered before the stream ends."""
    stream = await raw.logged_in(await account())
    stream.send("<iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq></stream:stream>")
    answer = await stream.element()
    assert (answer.tag, answer.get("id")) == (CLIENT + "iq", "last")
    await stream.end_of_stream()


async def test_the_end_in_the_clear(raw):
    stream = await raw.connect()
    stream.send(header() + "</stream:stream>")
    assert (await stream.element()).tag == STREAM + "features"
    await stream.end_of_stream()

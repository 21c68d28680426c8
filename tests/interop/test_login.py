"""Logging in: TLS, SASL with and without channel binding, and all the ways not to get in."""

import asyncio
import hashlib
import socket
import ssl
import warnings

import pytest
from OpenSSL import SSL

from harness.peer import TLS_1_2, TLS_1_3, Peer
from harness.raw import SASL, STREAM, auth, header, plain
from harness.scram import Scram
from harness.server import unique

CB = "{urn:xmpp:sasl-cb:0}"
SASL2 = "{urn:xmpp:sasl:2}"
BIND2 = "{urn:xmpp:bind:0}"


async def test_the_strongest_mechanism_that_slixmpp_has_is_used(peer):
    alice = await peer()
    assert alice.mechanism == "SCRAM-SHA-256"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
async def test_each_mechanism_logs_in(peer, mechanism):
    alice = await peer(mechanism=mechanism)
    assert alice.mechanism == mechanism
    await alice.ping()


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
@pytest.mark.parametrize("restrict", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
async def test_each_version_of_tls(server, peer, direct_tls, restrict):
    alice = await peer(tls=restrict(server.tls()), direct_tls=direct_tls)
    await alice.ping()
    # With 1.2 slixmpp tries `tls-unique` first, which is refused.
    assert alice.mechanism == "SCRAM-SHA-256"
    expected = "TLSv1.2" if restrict is TLS_1_2 else "TLSv1.3"
    assert alice.xmpp.socket.version() == expected


async def test_older_tls_is_refused(server):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", server.port("c2s_tls"), ssl=context)


async def test_a_wrong_password_is_refused_and_the_right_one_still_good(server, peer, account):
    jid = await account()
    wrong = Peer(server, jid, "wrong", mechanism="SCRAM-SHA-256")
    assert await wrong.failed_login() == ["not-authorized"]
    await (await peer(jid)).ping()


async def test_an_unknown_account_is_refused_just_so(server):
    nobody = Peer(server, unique("nobody") + "@localhost", mechanism="SCRAM-SHA-256")
    assert await nobody.failed_login() == ["not-authorized"]


async def test_a_wrong_plain_password(raw, account):
    jid = await account()
    stream = await raw.secured()
    stream.send(auth("PLAIN", plain(jid.partition("@")[0], "wrong")))
    await stream.failure("not-authorized")


async def test_a_disabled_device_cannot_log_in_until_enabled(server, peer, account, api):
    jid = await account()
    id = jid.partition("@")[0]
    session = await peer(jid)
    await api.ok("POST", f"/v1/devices/{id}/disable", status=204)
    await session.stream_error()
    refused = await Peer(server, jid, mechanism="SCRAM-SHA-256").failed_login()
    assert refused == ["account-disabled"]
    await api.ok("POST", f"/v1/devices/{id}/enable", status=204)
    await peer(jid)


async def test_names_and_passwords_beyond_ascii(server, api, peer):
    jid = f"{unique('ærøskøbing')}@localhost"
    await api.account(jid, "pässwörd·⅓")
    session = await peer(jid, password="pässwörd·⅓")
    assert session.bare == jid


async def test_a_password_is_compared_prepared(server, api, peer):
    # RFC 4013: the soft hyphen goes, the Roman numeral becomes two letters.
    jid = f"{unique('user')}@localhost"
    await api.account(jid, "I\u00adX")
    await peer(jid, password="\u2168")


async def test_before_tls_nothing_but_tls_is_offered(raw):
    stream = await raw.connect()
    features = await stream.begin()
    assert [feature.tag for feature in features] == ["{urn:ietf:params:xml:ns:xmpp-tls}starttls"]
    await stream.starttls()
    features = await stream.begin()
    mechanisms = [m.text for m in features.find(SASL + "mechanisms")]
    expected = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
    assert mechanisms == expected
    bindings = [b.get("type") for b in features.find(CB + "sasl-channel-binding")]
    assert bindings == ["tls-exporter", "tls-server-end-point"]
    inline = features.find(f"{SASL2}authentication/{SASL2}inline/{BIND2}bind")
    assert inline is not None


async def exchange(stream, mechanism, scram):
    """A whole exchange of classic SASL; the element that ended it."""
    stream.send(auth(mechanism, scram.first()))
    element = await stream.element()
    if element.tag == SASL + "challenge":
        stream.send(f"<response xmlns='{SASL[1:-1]}'>{scram.last(element.text)}</response>")
        element = await stream.element()
    return element


def end_point(stream):
    """`tls-server-end-point` of an ECDSA or RSA certificate signed with SHA-256."""
    certificate = stream.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return hashlib.sha256(certificate).digest()


@pytest.mark.parametrize(("mechanism", "hash"), [("SCRAM-SHA-256-PLUS", "sha256"), ("SCRAM-SHA-1-PLUS", "sha1")])
async def test_plus_bound_to_the_certificate(raw, account, mechanism, hash):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    scram = Scram(user, hash=hash, gs2="p=tls-server-end-point,,", binding=end_point(stream))
    success = await exchange(stream, mechanism, scram)
    assert success.tag == SASL + "success"
    scram.check(success.text)


async def test_plus_bound_to_another_channel_is_refused(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    scram = Scram(user, gs2="p=tls-server-end-point,,", binding=bytes(32))
    assert (await exchange(stream, "SCRAM-SHA-256-PLUS", scram)).tag == SASL + "failure"


async def test_plus_with_an_unknown_binding_is_refused(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    assert (await exchange(stream, "SCRAM-SHA-256-PLUS", Scram(user, gs2="p=tls-unique,,"))).tag == SASL + "failure"


async def test_a_client_that_saw_no_plus_was_deceived(raw, account):
    # RFC 5802 §6: `y` says "I can bind, you seemingly cannot": somebody took -PLUS from the list.
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    assert (await exchange(stream, "SCRAM-SHA-256", Scram(user, gs2="y,,"))).tag == SASL + "failure"


async def test_plus_bound_to_the_exporter(server, account):
    """By OpenSSL, as Python's own module cannot export: another TLS derives what the server derived."""
    user = (await account()).partition("@")[0]
    tls = blocking_tls(server)
    binding = tls.export_keying_material(b"EXPORTER-Channel-Binding", 32, b"")
    scram = Scram(user, gs2="p=tls-exporter,,", binding=binding)
    tls.sendall(header().encode())
    read_until(tls, b"</stream:features>")
    tls.sendall(auth("SCRAM-SHA-256-PLUS", scram.first()).encode())
    challenge = read_until(tls, b"</challenge>")
    answer = scram.last(challenge.partition(b">")[2].partition(b"<")[0].decode())
    tls.sendall(f"<response xmlns='{SASL[1:-1]}'>{answer}</response>".encode())
    success = read_until(tls, b"</success>")
    scram.check(success.partition(b">")[2].partition(b"<")[0].decode())
    tls.shutdown()
    tls.close()


def blocking_tls(server):
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.load_verify_locations(str(server.certificate))
    context.set_verify(SSL.VERIFY_PEER)
    plain_socket = socket.create_connection(("127.0.0.1", server.port("c2s_tls")), timeout=20)
    plain_socket.setblocking(True)
    tls = SSL.Connection(context, plain_socket)
    tls.set_tlsext_host_name(b"localhost")
    tls.set_connect_state()
    tls.do_handshake()
    return tls


def read_until(tls, end):
    data = b""
    while end not in data:
        data += tls.recv(65536)
    return data


async def test_sasl2_and_bind2_in_one_round_trip(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    stream.send(
        f"<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>{plain(user)}</initial-response>"
        "<bind xmlns='urn:xmpp:bind:0'><tag>tests</tag><enable xmlns='urn:xmpp:sm:3'/></bind></authenticate>"
    )
    success = await stream.element()
    assert success.tag == SASL2 + "success"
    assert success.findtext(SASL2 + "authorization-identifier").startswith(f"{user}@localhost/tests/")
    assert success.find(f"{BIND2}bound/{{urn:xmpp:sm:3}}enabled") is not None
    # The features of the new stream follow without a new header (XEP-0388 §2.6.1).
    assert (await stream.element()).tag == STREAM + "features"
    await stream.ping()


async def test_five_failures_end_the_stream(raw, account):
    user = (await account()).partition("@")[0]
    stream = await raw.secured()
    for _ in range(5):
        stream.send(auth("PLAIN", plain(user, "wrong")))
        await stream.failure("not-authorized")
    await stream.stream_error("policy-violation")


async def test_another_session_of_the_same_resource_replaces_the_first(peer, account):
    jid = await account()
    first = await peer(f"{jid}/phone")
    second = await peer(f"{jid}/phone")
    assert await first.stream_error() == "conflict"
    assert second.jid == f"{jid}/phone"
    await second.ping()

"""Tokens for returning clients (XEP-0484), spoken by hand: no library here knows them."""

import base64
import hashlib
import hmac
import xml.etree.ElementTree as ET

from harness.raw import Raw, header, plain

SASL = "{urn:ietf:params:xml:ns:xmpp-sasl}"
SASL2 = "{urn:xmpp:sasl:2}"
FAST = "{urn:xmpp:fast:0}"
BIND2 = "<bind xmlns='urn:xmpp:bind:0'/>"
AGENT = "<user-agent id='d4565fa7-4d72-4749-b3d3-740edbf87770'/>"


def authenticate(mechanism, initial, inside=""):
    return (
        f"<authenticate xmlns='urn:xmpp:sasl:2' mechanism='{mechanism}'>"
        f"<initial-response>{initial}</initial-response>{AGENT}{inside}{BIND2}</authenticate>"
    )


def request(mechanism):
    return f"<request-token xmlns='urn:xmpp:fast:0' mechanism='{mechanism}'/>"


def mac(token, role, binding=b""):
    return hmac.new(token.encode(), role + binding, hashlib.sha256).digest()


def redeem(user, token, mechanism="HT-SHA-256-NONE", binding=b"", **attributes):
    """A login by token, in one message."""
    initial = base64.b64encode(user.encode() + b"\0" + mac(token, b"Initiator", binding)).decode()
    attributes = "".join(f" {name}='{value}'" for name, value in attributes.items())
    return authenticate(mechanism, initial, f"<fast xmlns='urn:xmpp:fast:0'{attributes}/>")


async def first_login(server, user, mechanism="HT-SHA-256-NONE"):
    """Logs in by password and asks for a token; the token."""
    stream = await Raw.secured(server)
    stream.send(authenticate("PLAIN", plain(user), request(mechanism)))
    success = await stream.element()
    assert success.tag == SASL2 + "success", ET.tostring(success)
    token = success.find(FAST + "token")
    assert token.get("expiry").endswith("Z")
    await stream.close()
    return token.get("token")


def end_point(server):
    """`tls-server-end-point` of the certificate (RFC 5929 §4.1)."""
    lines = server.certificate.read_text().split("-----")[2]
    return hashlib.sha256(base64.b64decode("".join(lines.split()))).digest()


async def test_it_is_offered_inline(raw):
    stream = await raw.secured()
    offered = stream.features.find(f"{SASL2}authentication/{SASL2}inline/{FAST}fast")
    names = [mechanism.text for mechanism in offered]
    assert names == ["HT-SHA-256-EXPR", "HT-SHA-256-ENDP", "HT-SHA-256-NONE"]


async def test_a_token_is_a_login_in_one_breath(server, account):
    user = (await account()).split("@")[0]
    token = await first_login(server, user)
    for count in (1, 2):
        stream = await Raw.connect(server, "c2s_tls")
        # Nothing is waited for: header and login leave together.
        stream.send(header() + redeem(user, token, count=count))
        features, success = await stream.element(), await stream.element()
        assert features.tag.endswith("features")
        assert success.tag == SASL2 + "success", ET.tostring(success)
        proof = base64.b64decode(success.findtext(SASL2 + "additional-data"))
        assert proof == mac(token, b"Responder")
        assert success.find("{urn:xmpp:bind:0}bound") is not None
        await stream.element()
        await stream.ping()
        await stream.close()


async def test_a_token_is_bound_to_the_certificate(server, account):
    user = (await account()).split("@")[0]
    token = await first_login(server, user, "HT-SHA-256-ENDP")
    stream = await Raw.secured(server)
    stream.send(redeem(user, token, "HT-SHA-256-ENDP", end_point(server)))
    assert (await stream.element()).tag == SASL2 + "success"
    await stream.close()
    for mechanism in ("HT-SHA-256-ENDP", "HT-SHA-256-NONE"):
        await refused(server, redeem(user, token, mechanism))


async def refused(server, message, condition="not-authorized"):
    stream = await Raw.secured(server)
    stream.send(message)
    failure = await stream.element()
    assert failure.tag == SASL2 + "failure", ET.tostring(failure)
    assert failure.find(SASL + condition) is not None, ET.tostring(failure)
    await stream.close()


async def test_what_was_heard_once_is_not_taken_again(server, account):
    user = (await account()).split("@")[0]
    token = await first_login(server, user)
    stream = await Raw.secured(server)
    stream.send(redeem(user, token, count=7))
    assert (await stream.element()).tag == SASL2 + "success"
    await stream.close()
    await refused(server, redeem(user, token, count=7))
    await refused(server, redeem(user, token, count=0), "malformed-request")


async def test_a_token_ends(server, api, account):
    jid = await account()
    user = jid.split("@")[0]
    token = await first_login(server, user)
    stream = await Raw.secured(server)
    stream.send(redeem(user, token, invalidate="true"))
    assert (await stream.element()).tag == SASL2 + "success"
    await stream.close()
    await refused(server, redeem(user, token))

    token = await first_login(server, user)
    await api.ok("DELETE", f"/v1/admin/accounts/{jid}/tokens", status=204)
    await refused(server, redeem(user, token))

    token = await first_login(server, user)
    body = {"password": "another", "keep_sessions": True}
    await api.ok("PUT", f"/v1/admin/accounts/{jid}/password", body, status=204)
    await refused(server, redeem(user, token))


async def test_other_clients_and_accounts(server, account):
    user, other = [(await account()).split("@")[0] for _ in range(2)]
    token = await first_login(server, user)
    await refused(server, redeem(other, token))
    await refused(server, redeem("nobody-of-that-name", token))
    await refused(server, redeem(user, token).replace("d4565fa7", "00000000"))
    await refused(server, redeem(user, token).replace(AGENT, ""), "malformed-request")

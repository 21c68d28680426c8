"""Registrations for push, as apps make them."""

import xml.etree.ElementTree as ET

PUSH = "urn:xmpp:push:0"
PUBLISH_OPTIONS = "http://jabber.org/protocol/pubsub#publish-options"


async def request(peer, content, kind="set"):
    """An IQ request of a peer to its own account; the answer's payload."""
    iq = peer.xmpp.make_iq(ifrom=peer.jid)
    iq["type"] = kind
    iq.append(ET.fromstring(content))
    answer = await iq.send(timeout=10)
    return next(iter(answer.xml), None)


def form(fields):
    """A form of publish-options (XEP-0357)."""
    shown = "".join(f"<field var='{name}'><value>{value}</value></field>" for name, value in fields.items())
    return (
        "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'>"
        f"<value>{PUBLISH_OPTIONS}</value></field>{shown}</x>"
    )


async def enable(peer, fields, node="phone", jid="push.localhost"):
    """An app registers itself."""
    await request(peer, f"<enable xmlns='{PUSH}' jid='{jid}' node='{node}'>{form(fields)}</enable>")


async def register(api, account, channel, node="phone", shown="whole"):
    """Somebody registers an app by HTTP; `channel` is what names its push service."""
    body = {"account": account, "node": node, "shown": shown, **channel}
    return await api.ok("POST", "/v1/push/registrations", body, status=201)


def of_app(app, device):
    """An app on a device, for `register`."""
    return {"app": {"name": app, "token": device.token}}

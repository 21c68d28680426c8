"""A client that distributes pushes to applications on its device, as Conversations does for UnifiedPush; and what its applications know."""

import base64
import hashlib
import os
import xml.etree.ElementTree as ET

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from .inbox import Inbox
from .peer import CLIENT
from .push_service import encoded
from .pushes import request

UNIFIED_PUSH = "http://gultsch.de/xmpp/drafts/unified-push"
SERVICE = "push.localhost"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"


def hashed(text):
    """What stands for an application, or an instance of it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Application:
    """An application on the device: what senders need to push to it, and what it was given."""

    def __init__(self, name, instance="default"):
        self.name, self.instance = hashed(name), hashed(instance)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.pushes = Inbox(f"the application {name}")
        self.endpoint = self.expiration = None

    @property
    def subscription(self):
        """As `PushSubscription.toJSON()` gives it."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {"endpoint": self.endpoint, "keys": {"p256dh": encoded(point), "auth": encoded(self.auth)}}

    def decrypt(self, body):
        return http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm")

    async def next(self):
        """The next push, decrypted."""
        return self.decrypt(await self.pushes.take(what="a push"))

    async def next_as_it_came(self):
        return await self.pushes.take(what="a push")


class Distributor:
    """Takes pushes for its applications over the session of a peer."""

    def __init__(self, peer, *applications, answers=True):
        self.peer = peer
        self.applications = {(app.name, app.instance): app for app in applications}
        # What it does not answer, its server does not know to have come, but for the bytes.
        self.answers = answers
        self.unknown = Inbox("the distributor (unknown applications)")
        came = MatchXPath(f"{CLIENT}iq/{{{UNIFIED_PUSH}}}push")
        peer.xmpp.register_handler(Callback("push", came, self._came))

    async def register(self, app, vapid=None):
        """Asks for the endpoint of an application."""
        self.applications[app.name, app.instance] = app
        iq = self.peer.xmpp.make_iq_set(ito=SERVICE)
        attributes = {"application": app.name, "instance": app.instance}
        if vapid:
            attributes["vapid"] = vapid
        iq.append(ET.Element(f"{{{UNIFIED_PUSH}}}register", attributes))
        answer = await iq.send(timeout=10)
        registered = answer.xml.find(f"{{{UNIFIED_PUSH}}}registered")
        app.endpoint, app.expiration = registered.get("endpoint"), registered.get("expiration")
        return app

    def forget(self, app):
        """The application is uninstalled."""
        del self.applications[app.name, app.instance]

    async def endpoints(self):
        """The endpoints of the account, as the server lists them."""
        listed = await request(self.peer, "<endpoints xmlns='urn:carillon:push:0'/>", "get")
        return [dict(endpoint.attrib) for endpoint in listed]

    def _came(self, iq):
        push = iq.xml.find(f"{{{UNIFIED_PUSH}}}push")
        assert iq["from"] == SERVICE
        assert iq["type"] == "set"
        body = base64.b64decode(push.text or "", validate=True)
        app = self.applications.get((push.get("application"), push.get("instance")))
        if app is None:
            self.unknown.put(body)
            self.peer.send(
                f"<iq type='error' id='{iq['id']}' to='{SERVICE}'><error type='cancel' code='404'>"
                f"<item-not-found xmlns='{STANZAS}'/></error></iq>"
            )
            return
        app.pushes.put(body)
        if self.answers:
            self.peer.send(f"<iq type='result' id='{iq['id']}' to='{SERVICE}'/>")

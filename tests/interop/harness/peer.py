"""slixmpp as one end of the conversation."""

import ssl
import xml.etree.ElementTree as ET

from slixmpp import ClientXMPP
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from .inbox import DEADLINE_S, Inbox, deadline

CLIENT = "{jabber:client}"
DELAY = "{urn:xmpp:delay}delay"
JSON = "{urn:xmpp:json:0}json"
NOTIFICATION = "{urn:carillon:notification:0}notification"


class Peer:
    """A slixmpp client, and what it received."""

    def __init__(self, server, jid, password="secret", *, direct_tls=False, mechanism=None, plugins=(), tls=None):
        self.xmpp = ClientXMPP(jid, password)
        self.xmpp.enable_direct_tls = direct_tls
        self.xmpp.enable_starttls = not direct_tls
        self.xmpp.enable_plaintext = False
        self.xmpp.whitespace_keepalive = False
        self.xmpp.ssl_context = tls or server.tls(verify_name=jid.partition("@")[2].startswith("localhost"))
        self.plugin("feature_mechanisms").use_mech = mechanism
        for plugin in ("xep_0030", "xep_0199", *plugins):
            self.xmpp.register_plugin(plugin)
        self._address = ("127.0.0.1", server.port("c2s_tls" if direct_tls else "c2s"))
        self.messages = Inbox(f"{jid} (messages)")
        self.presences = Inbox(f"{jid} (presence)")
        self.stream_errors = Inbox(f"{jid} (stream errors)")
        self._happened = Inbox(f"{jid} (events)")
        self._handle("message", self.messages)
        self._handle("presence", self.presences)
        self.xmpp.add_event_handler("stream_error", self.stream_errors.put)
        for event in ("session_start", "failed_auth", "failed_all_auth", "disconnected", "connection_failed"):
            self.xmpp.add_event_handler(event, lambda data, event=event: self._happened.put((event, data)))

    def _handle(self, name, inbox):
        self.xmpp.register_handler(Callback(f"inbox {name}", MatchXPath(CLIENT + name), lambda s: inbox.put(s.xml)))

    @classmethod
    async def connect(cls, *arguments, presence=True, **options):
        """A peer that is logged in and, unless told otherwise, available."""
        peer = cls(*arguments, **options)
        await peer.log_in(presence)
        return peer

    async def log_in(self, presence=True):
        self.xmpp.connect(*self._address)
        # It may fail with one mechanism and succeed with the next.
        event, data = await self._happened.take(lambda happened: happened[0] != "failed_auth", "the login")
        assert event == "session_start", f"{event}: {data}"
        if presence:
            await self.available()

    def reconnect(self, server=None):
        """Connects once more after the connection was lost; `server`: the process that took the place of the first."""
        if server:
            self._address = ("127.0.0.1", server.port("c2s"))
        self.xmpp.connect(*self._address)

    async def failed_login(self):
        """Tries to log in; the SASL conditions of its failures."""
        self.xmpp.connect(*self._address)
        conditions = []
        while True:
            event, data = await self._happened.take(what="the end of the login")
            assert event != "session_start", "the login was to fail"
            if event == "failed_auth":
                conditions.append(data["condition"])
            else:
                return conditions

    async def available(self, **presence):
        """Sends presence and waits until the server has reflected it."""
        self.xmpp.send_presence(**presence)
        await self.presences.take(lambda p: p.get("from") == self.jid and p.get("type") is None, "its own presence")

    @property
    def jid(self):
        return str(self.xmpp.boundjid)

    @property
    def bare(self):
        return self.xmpp.boundjid.bare

    @property
    def mechanism(self):
        return self.plugin("feature_mechanisms").mech.name

    def plugin(self, name):
        return self.xmpp.plugin[name]

    def send(self, xml):
        """Sends XML as it is written here, past slixmpp's own counting."""
        self.xmpp.send_raw(xml)

    def chat(self, to, body, id=None, type="chat"):
        message = self.xmpp.make_message(mto=to, mbody=body, mtype=type)
        if id:
            message["id"] = id
        message.send()

    async def message(self, body=None, **attributes):
        """The next message with this body, and these attributes."""

        def wanted(m):
            return (body is None or m.findtext(CLIENT + "body") == body) and all(
                m.get(name.rstrip("_")) == value for name, value in attributes.items()
            )

        return await self.messages.take(wanted, f"a message {body!r} {attributes}")

    async def notification(self, id):
        """The notification of this id."""
        message = await self.messages.take(lambda m: m.get("id") == id, f"notification {id}")
        assert message.find(NOTIFICATION) is not None, ET.tostring(message)
        return message

    async def presence(self, from_, type=None):
        return await self.presences.take(
            lambda p: p.get("from") == from_ and p.get("type") == type, f"presence {type or 'available'} from {from_}"
        )

    async def ping(self):
        """A round trip to the server: what it sent before has arrived then."""
        async with deadline(f"a pong to {self.jid}"):
            return await self.plugin("xep_0199").ping(self.xmpp.boundjid.domain, timeout=DEADLINE_S)

    async def stream_error(self):
        """The condition of the error that ends the stream."""
        error = await self.stream_errors.take(what="a stream error")
        await self.disconnected()
        return error["condition"]

    async def disconnected(self):
        await self._happened.take(lambda happened: happened[0] == "disconnected", "the end of the connection")

    async def until_gone(self):
        """The same however long it takes."""
        await self._happened.take(lambda happened: happened[0] == "disconnected", seconds=3600)

    async def close(self):
        """Closes the stream in good manners."""
        if self.xmpp.is_connected():
            async with deadline(f"the end of {self.jid}"):
                await self.xmpp.disconnect(wait=DEADLINE_S)
        self._stop()

    async def drop(self):
        """Loses the connection without a word."""
        self.xmpp.transport.abort()
        await self.disconnected()
        self._stop()

    def _stop(self):
        self.xmpp.cancel_connection_attempt()
        tasks = [self.xmpp._run_out_filters]
        for task in tasks:
            if task is not None:
                task.cancel()


def tls_of(version):
    """A filter of contexts for one version of TLS."""

    def restrict(context):
        context.minimum_version = context.maximum_version = version
        return context

    return restrict


TLS_1_2 = tls_of(ssl.TLSVersion.TLSv1_2)
TLS_1_3 = tls_of(ssl.TLSVersion.TLSv1_3)

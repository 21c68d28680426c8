"""A live upgrade under TLS 1.2: the old process relays such connections, for a time."""

import asyncio
import json
import signal
import ssl

from harness.api import Api
from harness.raw import Raw
from harness.upgrade import PATIENCE_S, Upgradable

BODY = "{jabber:client}body"
SM = "{urn:xmpp:sm:3}"


class OldClients(Upgradable):
    """A node whose clients know no more than TLS 1.2."""

    def tls(self, verify_name=True):
        context = super().tls(verify_name)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    async def hand_over(self):
        """Has the node go on in another process; the old one, which relays."""
        old = self.process
        old.send_signal(signal.SIGUSR2)
        async with asyncio.timeout(PATIENCE_S):
            while json.loads((self.data / "node.json").read_text())["pid"] == old.pid:
                await asyncio.to_thread(old.poll)
        return old


async def resumable(server, user):
    """A session that can be resumed, and its key."""
    stream = await Raw.logged_in(server, user, presence=False)
    assert stream.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
    stream.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
    enabled = await stream.until(lambda element: element.tag == SM + "enabled")
    await stream.available()
    return stream, enabled.get("id")


async def talk(one, other, text):
    """A message each way."""
    for source, target in ((one, other), (other, one)):
        source.send(f"<message to='{target.jid}' type='chat'><body>{text}</body></message>")
        await target.until(lambda element: element.findtext(BODY) == text)


async def start(tmp_path, **settings):
    server = OldClients(tmp_path, **settings)
    api = Api(server)
    for name in ("alice", "bob"):
        await api.account(name)
    await api.aclose()
    return server


async def test_connections_go_on_through_the_old_process(tmp_path):
    server = await start(tmp_path)
    try:
        alice, _ = await resumable(server, "alice")
        bob, _ = await resumable(server, "bob")
        await talk(alice, bob, "before")
        old = await server.hand_over()
        for size in (1, 100, 16_000, 50_000):
            await talk(alice, bob, "x" * size)
        assert old.poll() is None, "it relays"
        await alice.close()
        await bob.close()
        # With its last connection it ends.
        await asyncio.to_thread(server.adopt, old)
    finally:
        await asyncio.to_thread(server.end)


async def test_a_client_whose_time_is_up_resumes_at_the_new_process(tmp_path):
    server = await start(tmp_path, upgrade__relay_timeout_ms=200)
    try:
        alice, key = await resumable(server, "alice")
        await server.upgrade()
        await alice.eof()
        again = await Raw.secured(server)
        await again.authenticate("alice")
        again.send(f"<resume xmlns='urn:xmpp:sm:3' h='0' previd='{key}'/>")
        await again.until(lambda element: element.tag == SM + "resumed")
        await again.ping()
        await again.close()
    finally:
        await asyncio.to_thread(server.end)

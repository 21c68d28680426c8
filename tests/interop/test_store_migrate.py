"""`carillon store migrate` and `carillon store check`, as `docs/book/postgresql.md` has them: a node goes to PostgreSQL and back."""

import asyncio
import contextlib
import datetime
import json
import re
import shlex
import subprocess
import types

import pytest
from slixmpp.jid import JID
from test_archive import archived, talk
from test_inbox import inbox
from test_pubsub import SERVICE
from test_rooms import enter, made, text
from test_roster import befriend, listed

from harness.api import Api
from harness.inbox import deadline
from harness.peer import Peer
from harness.postgres import Postgres, name_of
from harness.push_service import Subscription
from harness.pushes import register
from harness.raw import Raw
from harness.server import BINARY, ROOT, run

pytestmark = pytest.mark.embedded

BOOK = ROOT / "docs/book/postgresql.md"
PLUGINS = ("xep_0030", "xep_0045", "xep_0060", "xep_0313", "xep_0410", "xep_0441")
TEA = JID("tea@rooms.localhost")
SETTINGS = {"archive__enabled": "true", "invitations__enabled": "true", "links__hosts": "go.example.com=localhost"}


def command_of_the_book(name, sqlite, url):
    """The arguments of the one command that the book names so, with its places replaced."""
    (line,) = re.findall(rf"^# carillon (store {name} .+)$", BOOK.read_text(), re.MULTILINE)
    line = re.sub(r"/var/lib/carillon\S*", str(sqlite), line)
    return shlex.split(re.sub(r"postgresql://\S+", url, line))


@pytest.fixture
def database():
    postgres = Postgres()
    yield postgres
    postgres.end()


class Life:
    """What people, devices and their senders have in a node, and what all of them see."""

    def __init__(self, server):
        self.server = server
        self.api = Api(server)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.api.aclose()

    @contextlib.asynccontextmanager
    async def people(self):
        async with contextlib.AsyncExitStack() as stack:
            people = []
            for name in ("alice", "bob"):
                people.append(await Peer.connect(self.server, f"{name}@localhost", plugins=PLUGINS))
                stack.push_async_callback(people[-1].close)
            yield people

    async def begin(self):
        """Everything, over the wire."""
        api = self.api
        for name in ("alice", "bob", "carol"):
            await api.account(f"{name}@localhost")
        await api.ok("PUT", "/v1/topics/news", {"title": "Größe"}, status=201)
        async with self.people() as (alice, bob):
            await listed(alice)
            await listed(bob)
            await befriend(alice, bob)
            await talk(alice, bob, [f"{n} \U0001f514" for n in range(12)])
            await made(alice, TEA, persistentroom=True)
            await self.say(alice, "in the room")
            async with deadline("a subscription"):
                await bob.plugin("xep_0060").subscribe(SERVICE, "news", subscribee=bob.bare)
        await api.ok("POST", "/v1/topics/news/items", {"id": "i1", "payload": {"n": 1}}, status=202)
        self.kept = (await api.notify("carol@localhost", {"n": 7}, audience="always"))["id"]
        later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=20)
        asked = {"audience": "always", "send_at": later.strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.scheduled = (await api.notify("carol@localhost", {"n": 8}, **asked))["id"]
        app = Subscription(types.SimpleNamespace(url="https://push.example.org"), "carol")
        await register(api, "carol@localhost", {"web_push": app.json()})
        await api.ok("POST", "/v1/webhooks", {"url": "https://hook.example.org/"}, status=201)
        await api.ok("POST", "/v1/links", {"url": "https://example.org/a"}, status=201)
        await api.ok("POST", "/v1/invitations", {"uses": 3}, status=201)
        await api.ok("POST", "/v1/admin/keys", {"name": "back end", "scopes": ["send"]}, status=201)

    async def say(self, peer, words):
        peer.xmpp.send_message(mto=TEA, mbody=words, mtype="groupchat")
        await peer.messages.take(text(words), words)

    async def go_on(self, words):
        """Something new of each kind that is numbered."""
        async with self.people() as (alice, bob):
            [id] = await talk(bob, alice, [words])
            seen = await archived(alice)
            assert seen[-1] == (id, words)
            assert len({id for id, _ in seen}) == len(seen), "a number is given once"
            await enter(alice, TEA, "Ali")
            await self.say(alice, words)
        await self.api.ok("POST", "/v1/topics/news/items", {"id": words, "payload": 0}, status=202)

    async def seen(self):
        """Everything as it is read over the wire."""
        seen = {}
        async with self.people() as (alice, bob):
            for peer in (alice, bob):
                seen[peer.bare] = [await listed(peer), await archived(peer), await inbox(peer)]
            async with deadline("the archive of the room"):
                found = [m async for m in alice.plugin("xep_0313").iterate(jid=TEA, rsm={"max": 5})]
            results = [message["mam_result"] for message in found]
            seen["room"] = [(result["id"], result["forwarded"]["stanza"]["body"]) for result in results]
        for path in (
            "/v1/topics/news",
            "/v1/topics/news/items",
            "/v1/topics/news/subscribers",
            "/v1/webhooks",
            "/v1/links",
            "/v1/invitations",
            "/v1/admin/accounts",
            "/v1/rooms",
            f"/v1/notifications/{self.kept}",
            f"/v1/notifications/{self.scheduled}",
        ):
            seen[path] = await self.api.ok("GET", path)
        # What happened since a start is another matter.
        del seen["/v1/topics/news"]["figures"]
        # How they fare is another matter: there is no such push service.
        apps = await self.api.ok("GET", "/v1/push/registrations?account=carol@localhost")
        seen["apps"] = [(app["id"], app["account"], app["node"]) for app in apps["registrations"]]
        keys = await self.api.ok("GET", "/v1/admin/keys")
        seen["keys"] = [(key["id"], key["name"]) for key in keys["keys"]]
        return seen


def whole(done):
    """What `--json` says of a copy that is whole."""
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["same"]
    assert not said["differing"]
    return said


def killed_after(command, lines):
    """Runs a copy, and kills it when it has said so much; whether it was still at it."""
    copy = subprocess.Popen([BINARY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(lines):
        copy.stderr.readline()
    copy.kill()
    copy.communicate()
    return copy.returncode != 0


async def in_order(url, *more):
    checked = await asyncio.to_thread(run, "store", "check", "--url", url, "--json", *more)
    said = json.loads(checked.stdout)
    assert [finding for finding in said["findings"] if finding["severity"] == "error"] == []
    assert checked.returncode == 0
    assert said["rules"] > 20


async def test_a_node_goes_to_postgresql_and_back(start, database, tmp_path):
    server = start(**SETTINGS)
    sqlite, url = server.data / "carillon.db", database.database("carillon")
    command = command_of_the_book("migrate", sqlite, url)
    async with Life(server) as life:
        await life.begin()
        before = await life.seen()
        refused = await asyncio.to_thread(run, *command)
        assert refused.returncode == 1
        assert "in use by another process" in refused.stderr
        kept = life.kept, life.scheduled
    server.end()
    await in_order(f"sqlite:{sqlite}")

    # It is killed again and again, each time a little later.
    caught = 0
    for lines in (1, 4, 9, 14):
        caught += await asyncio.to_thread(killed_after, command, lines)
        if database.sql("SELECT to_regclass('store_migration') IS NOT NULL", name_of(url)) == "f\n":
            break
        with pytest.raises(AssertionError, match="holds a part of a copy"):
            start(store__url=url, **SETTINGS)
    assert caught > 0
    said = whole(await asyncio.to_thread(run, *command, "--json"))
    assert said["resumed"]
    rows = {table["table"]: table["copied"] for table in said["tables"]}
    assert rows["account"] == 3
    assert rows["archive_entry"] == 24
    again = await asyncio.to_thread(run, *command)
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    await in_order(command_of_the_book("check", sqlite, url)[-1])

    server = start(store__url=url, **SETTINGS)
    async with Life(server) as life:
        life.kept, life.scheduled = kept
        assert await life.seen() == before
        await life.go_on("on PostgreSQL")
        after = await life.seen()
        assert after != before
        back = tmp_path / "back" / "carillon.db"
        other = ["store", "migrate", "--from", url, "--to", f"sqlite:{back}"]
        refused = await asyncio.to_thread(run, *other)
        assert refused.returncode == 1
        assert "stop all nodes first" in refused.stderr
    server.end()

    assert await asyncio.to_thread(killed_after, other, 2)
    whole(await asyncio.to_thread(run, *other, "--json"))
    await in_order(f"sqlite:{back}")
    sqlite.unlink()
    back.rename(sqlite)
    server = start(**SETTINGS)
    async with Life(server) as life:
        life.kept, life.scheduled = kept
        assert await life.seen() == after
        await life.go_on("on SQLite")
        # What was kept all the way is given once.
        carol = await Raw.logged_in(server, "carol")
        await carol.until(lambda e: e.get("id") == kept[0])
        await carol.close()
    server.end()


async def test_what_is_wrong_with_a_store_is_said(start, database):
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        await api.account("alice@localhost")
    server.end()
    sqlite, url = server.data / "carillon.db", database.database("carillon")
    whole(await asyncio.to_thread(run, *command_of_the_book("migrate", sqlite, url), "--json"))
    database.sql("UPDATE account SET offline = 7", name_of(url))
    checked = await asyncio.to_thread(run, "store", "check", "--url", url)
    assert checked.returncode == 1
    assert (
        "error: accounts whose number of offline messages is another than there are: 1, such as 1\n" in checked.stdout
    )
    # The server of the tests forgoes it.
    assert "warning: fsync is off" in checked.stdout
    missing = await asyncio.to_thread(run, "store", "check", "--url", f"sqlite:{sqlite}.none")
    assert missing.returncode == 1
    for stores in ((f"sqlite:{sqlite}", "sqlite:other.db"), (url, url), ("mysql://a", url)):
        wrong = await asyncio.to_thread(run, "store", "migrate", "--from", stores[0], "--to", stores[1])
        assert wrong.returncode == 2, wrong

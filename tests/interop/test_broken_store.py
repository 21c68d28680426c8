"""A store that fails, hangs or is damaged while the node runs: what is to be kept is refused with the time to come back, nothing is
said to be kept that is not, what need not be kept goes on, and the node recovers without a restart."""

import asyncio
import contextlib
import errno
import os

import pytest

from harness import store
from harness.api import Api, check_problem
from harness.faults import Faults
from harness.inbox import deadline
from harness.postgres import WANTED
from harness.raw import CLIENT, Raw

PAGE = 4096


class Scene:
    """A node with two sessions that chat, and an account without one."""

    @classmethod
    async def begin(cls, stack, server):
        scene = cls()
        scene.server, scene.api = server, Api(server)
        stack.push_async_callback(scene.api.aclose)
        for name in ("away", "one", "other"):
            await scene.api.account(f"{name}@localhost")
        scene.one, scene.other = [await Raw.logged_in(server, name) for name in ("one", "other")]
        for stream in (scene.one, scene.other):
            stack.push_async_callback(stream.close)
        scene.asked = {}
        return scene

    async def notify(self, key):
        """Asks for a notification to be kept; asking again with the same key asks for the same one."""
        body = {"to": "away@localhost", "payload": key}
        answer = await self.api.call("POST", "/v1/notifications", body, headers={"idempotency-key": key})
        self.asked.setdefault(key, [])
        if answer.status_code == 202:
            self.asked[key].append(answer.json()["id"])
        return answer

    async def refused(self, key, *expected):
        """That it is not said to be kept, and when to come back."""
        answer = await self.notify(key)
        code = answer.json().get("code")
        assert (answer.status_code, code) in expected, answer.text
        check_problem(answer, answer.status_code, code)
        assert int(answer.headers["retry-after"]) >= 1

    async def goes_on(self):
        """Chat between those who are here, notifications that need not be kept, and pings."""
        self.one.send(f"<message type='chat' to='{self.other.jid}'><body>in spite of all</body></message>")
        await self.other.until(lambda e: e.findtext(CLIENT + "body") == "in spite of all")
        for audience in ("connected", "active"):
            sent = await self.api.notify("one@localhost", "now", audience=audience)
            await self.one.until(lambda e, id=sent["id"]: e.get("id") == id)
        await self.one.ping()

    async def ready(self):
        answer = await self.api.call("GET", "/readyz")
        assert answer.status_code == 200
        return answer.text

    async def recovered(self):
        """What was refused is kept when it is asked for again; the node says that all is well."""
        for key in list(self.asked):
            async with deadline(f"{key} to be kept"):
                while (answer := await self.notify(key)).status_code != 202:
                    assert answer.status_code in (409, 503)
        assert await self.ready() == "ready\n"
        assert await self.api.figure("store_failing") == 0
        assert all(len(set(ids)) == 1 for ids in self.asked.values()), "asked twice, kept once"

    async def each_is_there_once(self, server):
        """After a kill."""
        away = await Raw.logged_in(server, "away")
        expected = {ids[0] for ids in self.asked.values()}
        got = [(await away.until(lambda e: e.tag == CLIENT + "message")).get("id") for _ in expected]
        assert set(got) == expected
        away.send("<iq type='get' id='end'><ping xmlns='urn:xmpp:ping'/></iq>")
        rest = await away.until(lambda e: e.tag == CLIENT + "message" or e.get("id") == "end")
        assert rest.get("id") == "end", "nothing comes twice"
        await away.close()


@pytest.fixture
def faults(tmp_path):
    if WANTED:
        pytest.skip("it is about the file of the embedded store")
    return Faults(tmp_path)


UNAVAILABLE, UNKNOWN = (503, "unavailable"), (503, "outcome-unknown")


@pytest.mark.parametrize(
    "fault",
    [{"write_errno": errno.EIO}, {"sync_errno": errno.EIO}, {"write_errno": errno.ENOSPC}],
    ids=["write-EIO", "fsync-EIO", "write-ENOSPC"],
)
async def test_a_disk_that_fails_in_the_middle(start, faults, fault):
    server = start(environment=faults.environment)
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        assert (await scene.notify("before")).status_code == 202
        for round in range(2):
            met = faults.set(**fault)
            for n in range(3):
                await scene.refused(f"refused-{round}-{n}", UNAVAILABLE, UNKNOWN)
            assert faults.met > met
            assert await scene.ready() == "ready; the store fails\n"
            assert await scene.api.figure("store_failing") == 1
            await scene.goes_on()
            # Reading is not harmed: who has an account comes in.
            await (await Raw.logged_in(server, "away", resource=f"in {round}", presence=False)).close()
            faults.set()
            await scene.recovered()
    log = server.log.read_text()
    assert "the store is written again" in log
    server.kill()
    server = start()
    await scene.each_is_there_once(server)
    server.end()


async def test_a_commit_that_takes_seconds_holds_up_nothing_else(start, faults):
    server = start(environment=faults.environment)
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        faults.set(sync_ms=3000)
        waits = asyncio.create_task(scene.notify("slow"))
        await scene.api.figure_is("store_committing_seconds", lambda n: n > 1)
        assert "; a commit of the store has been under way for" in await scene.ready()
        await scene.goes_on()
        await (await Raw.logged_in(server, "away", resource="in", presence=False)).close()
        assert await scene.api.figure("store_committing_seconds") > 1, "all of this was meanwhile"
        assert not waits.done(), "it is not said to be kept before it is"
        faults.set()
        assert (await waits).status_code == 202
        await scene.api.figure_is("store_committing_seconds", lambda n: n == 0)
        await scene.recovered()
    server.kill()
    server = start()
    await scene.each_is_there_once(server)
    server.end()


async def test_a_locked_file(start):
    server = start()
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        with store.locked(server):
            waits = asyncio.create_task(scene.refused("locked", UNAVAILABLE))
            await scene.goes_on()
            await waits
            assert await scene.ready() == "ready; the store fails\n"
            await scene.goes_on()
        await scene.recovered()
    server.kill()
    server = start()
    await scene.each_is_there_once(server)
    server.end()


async def test_a_disk_that_cannot_be_read(start, faults):
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        for name in ("one", "other"):
            await api.account(f"{name}@localhost")
    server.end()
    # What it has not read yet is not in its memory.
    server = start(environment=faults.environment)
    async with contextlib.aclosing(Api(server)) as api:
        faults.set(read_errno=errno.EIO)
        for _ in range(20):
            answer = await api.call("GET", "/v1/admin/accounts")
            check_problem(answer, 503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        assert faults.met > 0
        assert (await api.call("GET", "/readyz")).text.startswith("ready; the store fails")
        one = await Raw.secured(server)
        one.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AG9uZQBzZWNyZXQ=</auth>")
        await one.failure("temporary-auth-failure")
        await one.close()
        faults.set()
        assert len((await api.ok("GET", "/v1/admin/accounts"))["accounts"]) == 2
        await api.figure_is("store_failing", lambda n: n == 0)
        await (await Raw.logged_in(server, "one")).close()
    server.end(expected=["the store may be damaged", "store read failed"])
    log = server.log.read_text()
    # Not each of them: SQLite reports a disk that cannot be read as damage.
    assert 1 <= log.count("the store may be damaged") + log.count("store read failed") <= 4, log
    assert "the store is read again" in log


@pytest.mark.embedded
async def test_damage_that_is_met_while_the_node_runs_is_named(start):
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        for n in range(30):
            await api.account(f"user{n}@localhost")
    server.end()
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        assert await api.figure("store_damaged") == 0
        database = os.open(server.data / "carillon.db", os.O_WRONLY)
        size = os.fstat(database).st_size
        os.pwrite(database, b"Z" * (size - 2 * PAGE), 2 * PAGE)
        os.close(database)
        await api.problem(503, "unavailable", "GET", "/v1/admin/accounts")
        assert await api.figure("store_damaged") == 1
        assert "; the store may be damaged" in (await api.call("GET", "/readyz")).text
    failed = await server.command("backup", str(server.folder / "copy.db"))
    assert failed.returncode == 1
    assert f"{server.data}/carillon.db is damaged" in failed.stderr
    server.kill()
    assert "the store may be damaged: `carillon backup` checks it" in server.log.read_text()

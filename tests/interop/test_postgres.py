"""A node whose store is on PostgreSQL, by the server that the tests bring along, and what befalls that server."""

import asyncio
import contextlib
import os
import signal

import pytest
from test_broken_store import UNAVAILABLE, UNKNOWN, Scene

from harness.api import Api
from harness.inbox import deadline
from harness.postgres import Postgres, name_of
from harness.raw import Raw
from harness.server import Server, run


@pytest.fixture
def database():
    """A server of its own, that a test may stop."""
    postgres = Postgres()
    yield postgres
    postgres.end()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
async def test_the_database_is_away_and_comes_back(start, database, how):
    url = database.database()
    server = start(store__url=url)
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        for n in range(20):
            assert (await scene.notify(f"before-{n}")).status_code == 202
        database.stop(how)
        # What waits for the database waits for a while, and fails at once from then on.
        waits = asyncio.create_task(scene.refused("first", UNAVAILABLE, UNKNOWN))
        await scene.goes_on()
        await waits
        for n in range(3):
            await scene.refused(f"away-{n}", UNAVAILABLE)
        assert await scene.ready() == "ready; the store fails\n"
        assert await scene.api.figure("store_failing") == 1
        await scene.goes_on()
        database.start()
        async with deadline("the node to find the database"):
            while await scene.ready() != "ready\n":
                await scene.notify("back")
        await scene.recovered()
        # The same process and the same sessions.
        await scene.goes_on()
        await (await Raw.logged_in(server, "other", resource="new")).close()
    log = server.log.read_text()
    assert "the store is written again" in log
    server.kill()
    server = start(store__url=url)
    await scene.each_is_there_once(server)
    server.end()


async def test_a_restart_of_the_database_under_load_loses_and_doubles_nothing(start, database):
    server = start(store__url=database.database())
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        over = asyncio.Event()

        async def send(sender):
            sent = 0
            while not over.is_set():
                key = f"{sender}.{sent}"
                while (answer := await scene.notify(key)).status_code != 202:
                    assert answer.status_code in (409, 503), answer.text
                sent += 1
            return sent

        async with asyncio.TaskGroup() as group:
            senders = [group.create_task(send(n)) for n in range(4)]
            for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGINT):
                kept = len(scene.asked)
                async with deadline("notifications to be kept"):
                    while len(scene.asked) < kept + 40:
                        await scene.one.ping()
                await asyncio.to_thread(database.stop, how)
                await asyncio.to_thread(database.start)
            over.set()
        assert sum(task.result() for task in senders) > 100
        assert all(len(set(ids)) == 1 for ids in scene.asked.values()), "asked twice, kept once"
        assert await scene.api.figure("store_failing") == 0
    await scene.each_is_there_once(server)
    server.end()


async def test_a_standby_that_is_promoted_in_the_middle_of_commits_has_each_once(start, database):
    standby = Postgres(primary=database)
    try:
        database.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
        database.sql("SELECT pg_reload_conf()", "postgres")
        url = f"{database.database()}&host={standby.folder}&target_session_attrs=read-write"
        server = start(store__url=url)
        async with contextlib.AsyncExitStack() as stack:
            scene = await Scene.begin(stack, server)
            over = asyncio.Event()

            async def send(sender):
                sent = 0
                while not over.is_set():
                    key = f"{sender}.{sent}"
                    while (answer := await scene.notify(key)).status_code != 202:
                        assert answer.status_code in (409, 503), answer.text
                    sent += 1

            async with asyncio.TaskGroup() as group:
                for sender in range(4):
                    group.create_task(send(sender))
                kept = len(scene.asked)
                async with deadline("notifications to be kept"):
                    while len(scene.asked) < kept + 40:
                        await scene.one.ping()
                # As a machine that is lost.
                await asyncio.to_thread(database.stop, signal.SIGQUIT)
                await asyncio.to_thread(standby.sql, "SELECT pg_promote()", "postgres")
                kept = len(scene.asked)
                async with deadline("notifications to be kept by the other"):
                    while len(scene.asked) < kept + 40:
                        await scene.one.ping()
                over.set()
            assert all(len(set(ids)) == 1 for ids in scene.asked.values()), "asked twice, kept once"
            await scene.goes_on()
            assert await scene.ready() == "ready\n"
        await scene.each_is_there_once(server)
        server.end()
    finally:
        standby.end()


@pytest.mark.parametrize("statement", [None, "300ms"], ids=["lock_timeout", "statement_timeout"])
async def test_a_long_transaction_of_somebody_else_holds_up_what_is_kept_and_loses_nothing(start, database, statement):
    url = database.database()
    if statement:
        database.sql(f"ALTER DATABASE \"{name_of(url)}\" SET statement_timeout = '{statement}'", "postgres")
    server = start(store__url=url)
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        assert (await scene.notify("before")).status_code == 202
        for round in range(2):
            somebody = database.session(name_of(url))
            somebody.stdin.write("BEGIN; LOCK TABLE notification IN SHARE MODE; SELECT 'it has it';\n")
            somebody.stdin.flush()
            assert await asyncio.to_thread(somebody.stdout.readline) == "it has it\n"
            refused = asyncio.create_task(scene.refused(f"refused-{round}", UNAVAILABLE, UNKNOWN))
            await scene.goes_on()
            await refused
            somebody.stdin.close()
            await asyncio.to_thread(somebody.wait)
            somebody.stdout.close()
            await scene.recovered()
    server.kill()
    server = start(store__url=url)
    await scene.each_is_there_once(server)
    server.end()


async def test_a_full_disk_of_the_database_refuses_what_is_kept_and_recovers(start, database, disk):
    url = database.database()
    small = disk(database.folder / "small", "12m")
    database.give(small)
    server = start(store__url=url)
    database.sql(f"CREATE TABLESPACE small LOCATION '{small}'", "postgres")
    database.sql("ALTER TABLE notification SET TABLESPACE small", name_of(url))
    async with contextlib.AsyncExitStack() as stack:
        scene = await Scene.begin(stack, server)
        filler = small / "filler"
        assert (await scene.notify("before")).status_code == 202
        for round in range(2):
            free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
            filler.write_bytes(bytes(free))
            for n in range(200):
                if (answer := await scene.notify(f"{round}-{n}-{os.urandom(90).hex()}")).status_code != 202:
                    break
            assert answer.status_code == 503, answer.text
            await scene.goes_on()
            filler.unlink()
            await scene.recovered()
    server.kill()
    server = start(store__url=url)
    await scene.each_is_there_once(server)
    server.end()
    # The disk is taken away before the server ends.
    database.sql("ALTER TABLE notification SET TABLESPACE pg_default", name_of(url))
    database.sql("DROP TABLESPACE small", "postgres")


async def test_two_nodes_without_names_share_a_database(tmp_path, database):
    url, folders = database.database(), [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    nodes = [Server(folder, store__url=url) for folder in folders]
    apis = [Api(node) for node in nodes]
    for api, name in zip(apis, ("alice", "bob"), strict=True):
        await api.account(f"{name}@localhost")
    # A process that is started again takes the place of the one before it.
    nodes[1].kill()
    nodes[1] = Server(folders[1], store__url=url)
    await apis[1].aclose()
    apis[1] = Api(nodes[1])
    for api, name in zip(apis, ("carol", "dave"), strict=True):
        await api.account(f"{name}@localhost")
        await api.aclose()
    assert database.sql("SELECT count(*) FROM account", name_of(url)) == "4\n"
    assert database.sql("SELECT epoch FROM node ORDER BY epoch", name_of(url)) == "1\n3\n", (
        "an epoch is one of all nodes"
    )
    for node in nodes:
        node.end()


def test_config_check_looks_at_the_database(tmp_path, database):
    def check(url):
        settings = {"data_dir": tmp_path, "http.port": 0, "c2s.port": 0, "c2s_tls.port": 0, "websocket.port": 0}
        words = [f"{key}={value}" for key, value in (settings | {"store.url": url}).items()]
        return run("config", "check", *(word for one in words for word in ("--set", one)))

    url = database.database()
    assert "store.url: synchronous_commit" not in check(url).stdout
    # The server of the tests forgoes it.
    assert "warning: store.url: fsync is off" in check(url).stdout
    database.sql("ALTER ROLE postgres SET synchronous_commit = off", name_of(url))
    found = check(url)
    assert found.returncode == 0
    assert "warning: store.url: synchronous_commit is off" in found.stdout
    assert "; set synchronous_commit to on" in found.stdout
    database.sql(f'ALTER DATABASE "{name_of(url)}" CONNECTION LIMIT 3', "postgres")
    database.sql("ALTER ROLE postgres SET default_transaction_read_only = on", "postgres")
    found = check(url)
    assert found.returncode == 1
    assert "error: store.url: the server lets in 3 connections, and a node has 5" in found.stdout
    assert "error: store.url: the server is a standby, or read-only" in found.stdout
    found = check(url.replace("postgres@", "postgres:s3cret@"))
    assert found.returncode == 1
    assert "store.password_file" in found.stdout
    assert "s3cret" not in found.stdout + found.stderr
    database.stop()
    found = check(url)
    assert found.returncode == 1
    assert "error: store.url: PostgreSQL: error connecting to server" in found.stdout

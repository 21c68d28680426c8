"""`carillon backup` and `carillon restore`, as `docs/book/operations.md` has them."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import sqlite3

import pytest

from harness.api import Api
from harness.raw import Raw
from harness.server import ROOT, Server, run

pytestmark = pytest.mark.embedded

BOOK = ROOT / "docs/book/operations.md"
PLACES = {"file": r"/var/backups/.+?\.db", "data": r"/var/lib/carillon\b"}


def commands_of_the_book(name, **places):
    """The arguments of the commands that the book names, with its paths replaced."""
    (line,) = re.findall(rf"^# carillon ({name} .+)$", BOOK.read_text(), re.MULTILINE)
    for place, path in places.items():
        line = re.sub(PLACES[place], str(path), line)
    return shlex.split(line)


async def send_until_cancelled(api, sent):
    while True:
        sent.append((await api.notify("bob@localhost", audience="always"))["id"])


def read_back(copy):
    """What SQLite says of a copy, and how many notifications are in it."""
    with contextlib.closing(sqlite3.connect(copy)) as database:
        (checked,) = database.execute("PRAGMA integrity_check").fetchone()
        return checked, database.execute("SELECT count(*) FROM notification").fetchone()[0]


async def test_a_backup_of_a_node_under_load_is_restored(start, tmp_path):
    """The commands of the book, from one folder to another."""
    first = start(data_dir=tmp_path / "data")
    copy, sent = tmp_path / "copy.db", []
    async with contextlib.aclosing(Api(first)) as api:
        for user in ("alice", "bob"):
            await api.account(f"{user}@localhost")
        await api.ok("PUT", "/v1/topics/news", {"title": "News"}, status=201)
        topic = await api.ok("GET", "/v1/topics/news")
        kept = await api.notify("alice@localhost", "before the copy", audience="always")
        sending = asyncio.create_task(send_until_cancelled(api, sent))
        for _ in range(3):
            copy.unlink(missing_ok=True)
            before = len(sent)
            command = commands_of_the_book("backup", file=copy, data=first.data)
            backup = await asyncio.to_thread(run, *command, "--json")
            assert backup.returncode == 0, backup.stderr
            # Every one that was answered before, and no more than was asked.
            said = json.loads(backup.stdout)
            assert before < said["rows"]["notification"] <= len(sent) + 2
            assert read_back(copy) == ("ok", said["rows"]["notification"])
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        # The node has its database, which is not to be replaced under it.
        command = commands_of_the_book("restore", file=copy, data=first.data)
        refused = await asyncio.to_thread(run, *command)
        assert refused.returncode == 1
        assert "in use by another process" in refused.stderr
        assert "stop the node first" in refused.stderr
    first.end()
    second = tmp_path / "second"
    data = second / "data"
    data.mkdir(mode=0o700, parents=True)
    for name in ("node.secret", "admin.key"):
        shutil.copy(first.data / name, data / name)
    command = commands_of_the_book("restore", file=copy, data=data)
    command.remove("--replace")
    restored = await asyncio.to_thread(run, *command, "--json")
    assert (restored.returncode, restored.stderr) == (0, "")
    assert json.loads(restored.stdout)["rows"] == said["rows"]
    second = Server(second)
    try:
        assert second.key == first.key
        async with contextlib.aclosing(Api(second)) as api:
            assert await api.ok("GET", "/v1/topics/news") == topic
            assert (await api.trace(kept["id"]))["state"] == "stored"
            alice = await Raw.logged_in(second, "alice")
            await alice.until(lambda e: e.get("id") == kept["id"])
            await alice.close()
    finally:
        second.end()


async def test_a_database_is_replaced_only_if_that_is_said_and_the_former_is_kept(start, tmp_path):
    server = start()
    copy = tmp_path / "copy.db"
    assert (await server.command("backup", str(copy))).returncode == 0
    async with contextlib.aclosing(Api(server)) as api:
        await api.account("late@localhost")
    # The newest commits are in the log only.
    server.kill()
    refused = await server.command("restore", str(copy))
    assert refused.returncode == 2
    assert f"{server.data}/carillon.db exists: --replace" in refused.stderr
    restored = await server.command("restore", str(copy), "--replace", "--json")
    assert restored.returncode == 0, restored.stderr
    former = json.loads(restored.stdout)["replaced"]
    with contextlib.closing(sqlite3.connect(former)) as database:
        assert database.execute("SELECT local FROM account").fetchall() == [("late",)]
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        assert (await api.ok("GET", "/v1/admin/accounts"))["accounts"] == []
    server.end()


async def test_a_backup_for_which_there_is_no_space_leaves_nothing(disk, start, tmp_path):
    small = disk(tmp_path / "small", "128k")
    server = start()
    failed = await server.command("backup", str(small / "copy.db"))
    assert failed.returncode == 1
    assert f"no space is left for {small}/copy.db.partial" in failed.stderr
    assert not list(small.iterdir())
    # A restore that fails leaves the database as it was.
    copy = tmp_path / "copy.db"
    assert (await server.command("backup", str(copy))).returncode == 0
    server.end()
    failed = await asyncio.to_thread(run, "restore", str(copy), "--data-dir", str(small))
    assert failed.returncode == 1
    assert "no space is left" in failed.stderr
    assert [path.name for path in small.iterdir()] == ["carillon.db.lock"]


@pytest.mark.skipif(os.getuid() != 0, reason="gives files to another user, as root does")
async def test_what_root_restores_belongs_to_the_nodes_user(start, tmp_path):
    server = start()
    copy = tmp_path / "copy.db"
    assert (await server.command("backup", str(copy))).returncode == 0
    server.end()
    data = tmp_path / "of another"
    data.mkdir(mode=0o700)
    os.chown(data, 65532, 65532)
    restored = await asyncio.to_thread(run, "restore", str(copy), "--data-dir", str(data))
    assert restored.returncode == 0, restored.stderr
    found = {
        path.name: (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) for path in data.iterdir()
    }
    assert found == {"carillon.db": (65532, 65532, 0o600), "carillon.db.lock": (65532, 65532, 0o600)}


def test_what_is_no_backup_is_refused_by_name(tmp_path):
    for name, content in (("letter", b"Dear database, " * 1000), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
    with contextlib.closing(sqlite3.connect(tmp_path / "theirs")) as database:
        database.execute("CREATE TABLE theirs (x)")
    for name, why in {
        "letter": "is not an SQLite database",
        "empty": "not one of this server",
        "theirs": "not one of this server",
        "missing": "there is no",
    }.items():
        refused = run("restore", str(tmp_path / name), "--data-dir", str(tmp_path / "data"))
        assert refused.returncode == 2
        assert why in refused.stderr
        assert str(tmp_path / name) in refused.stderr
    assert not (tmp_path / "data").exists()
    refused = run("backup", str(tmp_path / "copy"), "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 2
    assert f"there is no {tmp_path}/data/carillon.db" in refused.stderr

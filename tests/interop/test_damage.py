"""A database that cannot be used is found when the node starts, and named with what is to be done."""

import contextlib
import sqlite3

import pytest

from harness.api import Api
from harness.server import run

pytestmark = pytest.mark.embedded

PAGE = 4096


def serve(folder):
    """Starts a node that must not start; what it says."""
    ports = [f"--set={name}.port=0" for name in ("c2s", "c2s_tls", "websocket", "http")]
    ended = run("serve", "--data-dir", str(folder), *ports)
    assert ended.returncode == 1, ended.stderr
    return ended.stderr


@pytest.fixture
async def stopped(start, tmp_path):
    """The database of a node that has ended, and a backup of it."""
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        for n in range(40):
            await api.account(f"user{n}@localhost")
    backup = tmp_path / "backup.db"
    assert (await server.command("backup", str(backup))).returncode == 0
    server.end()
    return server.data / "carillon.db", backup


async def test_a_damaged_database_is_named_and_a_restore_mends_it(start, stopped):
    database, backup = stopped
    good = database.read_bytes()
    for damaged, why in (
        (good[:-PAGE] + b"Z" * PAGE, "is damaged"),
        (good[:-PAGE], "is damaged"),
        (bytes(PAGE) + good[PAGE:], "is not an SQLite database"),
    ):
        database.write_bytes(damaged)
        said = serve(database.parent)
        assert f"carillon: {database} {why}" in said
        assert why != "is damaged" or "restore a backup with `carillon restore`" in said
        assert database.read_bytes() == damaged
        # A backup of it would be none.
        copy = database.parent.parent / "copy.db"
        failed = run("backup", str(copy), "--data-dir", str(database.parent))
        assert failed.returncode in (1, 2)
        assert why in failed.stderr
        assert not copy.exists()
    restored = run("restore", str(backup), "--data-dir", str(database.parent), "--replace")
    assert restored.returncode == 0, restored.stderr
    server = start()
    async with contextlib.aclosing(Api(server)) as api:
        assert len((await api.ok("GET", "/v1/admin/accounts"))["accounts"]) == 40
    server.end()


async def test_a_database_of_a_newer_version_or_of_another_program_is_left_alone(stopped):
    database, _ = stopped
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 1000")
    said = serve(database.parent)
    assert f"{database} has schema version 1000, this version of the server knows up to" in said
    assert "run a newer one, or restore a backup" in said
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA application_id = 1")
    assert f"{database} is an SQLite database, but not one of this server" in serve(database.parent)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1000,)
        assert connection.execute("SELECT count(*) FROM account").fetchone() == (40,)

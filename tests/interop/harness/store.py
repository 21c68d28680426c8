"""The database of a node, from beside it."""

import contextlib
import sqlite3


@contextlib.contextmanager
def locked(server):
    """Meanwhile the node cannot write: each write waits some seconds for the lock of the database, and fails. It can read."""
    with contextlib.closing(_open(server)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.rollback()


def count(server, table):
    """How many rows a table has."""
    with contextlib.closing(_open(server)) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def _open(server):
    return sqlite3.connect(server.data / "carillon.db", timeout=20, isolation_level=None)

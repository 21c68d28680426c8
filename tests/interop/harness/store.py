"""The database of a node, from beside it."""

import contextlib
import sqlite3

from .postgres import name_of, postgres

# What every group of writes of a node on PostgreSQL takes, and shares with others.
EVERYTHING = 0


@contextlib.contextmanager
def locked(server):
    """Meanwhile the node cannot write: each write waits some seconds for the lock of the database, and fails. It can read."""
    if server.store_url:
        with postgres().session(name_of(server.store_url)) as session:
            session.stdin.write(f"BEGIN; SELECT 'held' FROM pg_advisory_xact_lock({EVERYTHING});\n")
            session.stdin.flush()
            assert session.stdout.readline() == "held\n"
            yield
            session.stdin.close()
        return
    with contextlib.closing(_open(server)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.rollback()


def count(server, table):
    """How many rows a table has."""
    return int(value(server, f"SELECT count(*) FROM {table}"))


def value(server, query):
    """The only value that a query gives."""
    if server.store_url:
        return postgres().sql(query, name_of(server.store_url)).strip()
    with contextlib.closing(_open(server)) as database:
        return database.execute(query).fetchone()[0]


def run(server, statement):
    """Changes something behind the node's back."""
    if server.store_url:
        postgres().sql(statement, name_of(server.store_url))
        return
    with contextlib.closing(_open(server)) as database:
        database.execute(statement)


def _open(server):
    return sqlite3.connect(server.data / "carillon.db", timeout=20, isolation_level=None)

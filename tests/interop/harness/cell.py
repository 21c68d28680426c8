"""Nodes that serve as one, and the engines that they share."""

import json
import os
import pathlib
import sys
import tempfile

from .nats import Nats
from .postgres import Postgres, name_of
from .server import Server


class Cell:
    """So many nodes, with these settings."""

    # What a node is.
    KIND = Server

    def __init__(self, folder, nodes, **settings):
        self.folder, self.settings, self.ways = folder, settings, []
        self.nats, self.postgres, self.url = self.engines()
        self.secret = folder / "secret"
        self.secret.write_bytes(os.urandom(32))
        self.nodes = [self.start(n) for n in range(nodes)]

    def engines(self):
        """Starts what the nodes share; the last is the address of a database."""
        postgres = Postgres()
        return Nats(), postgres, postgres.database()

    def start(self, number):
        """Starts a node, or one again in the folder that it had."""
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        shared = {
            "store__url": self.url.replace(str(self.postgres.folder), str(self.way(number))),
            "node__name": self.name(number),
            "cell__nats": self.nats.url,
            "cell__secret_file": self.secret,
        }
        return self.KIND(folder, **shared | self.settings)

    @staticmethod
    def name(number):
        return f"node{number}"

    def way(self, number):
        """The folder in which a node finds the database's socket: a link, so that it can be cut off alone."""
        way = self.postgres.folder.parent / f"{self.postgres.folder.name}-{number}"
        if not way.is_symlink():
            way.symlink_to(self.postgres.folder)
            self.ways.append(way)
        return way

    def cut_off(self, number):
        """One node cannot reach the database any more, and the others can."""
        self.way(number).unlink()
        database = name_of(self.url)
        ends = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'carillon {}%'"
        )
        self.postgres.sql(ends.format(self.name(number)), database)

    def reconnect(self, number):
        self.way(number)

    def end(self):
        for node in self.nodes:
            if node.is_running():
                node.kill()
        for way in self.ways:
            way.unlink(missing_ok=True)
        self.nats.end()
        self.postgres.end()


def main(nodes):
    """Runs a cell for a program that says when it ends, by closing standard input, and when NATS is to `stop` and to `start` again."""
    with tempfile.TemporaryDirectory(prefix="carillon-cell-") as folder:
        cell = Cell(pathlib.Path(folder), nodes)
        try:
            told = [{"name": cell.name(n), "http": s.http, "key": s.key} for n, s in enumerate(cell.nodes)]
            print(json.dumps(told), flush=True)
            for line in sys.stdin:
                {"stop": cell.nats.stop, "start": cell.nats.start}[line.strip()]()
        finally:
            cell.end()


if __name__ == "__main__":
    main(int(sys.argv[1]))

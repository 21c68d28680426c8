"""Nodes that serve as one, and the engines that they share."""

import os

from .nats import Nats
from .postgres import Postgres
from .server import Server


class Cell:
    """So many nodes, with these settings."""

    def __init__(self, folder, nodes, **settings):
        self.folder, self.settings = folder, settings
        self.nats, self.postgres = Nats(), Postgres()
        self.url = self.postgres.database()
        self.secret = folder / "secret"
        self.secret.write_bytes(os.urandom(32))
        self.nodes = [self.start(n) for n in range(nodes)]

    def start(self, number):
        """Starts a node, or one again in the folder that it had."""
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        shared = {"store__url": self.url, "cell__nats": self.nats.url, "cell__secret_file": self.secret}
        return Server(folder, **shared, **self.settings)

    def end(self):
        for node in self.nodes:
            if node.is_running():
                node.kill()
        self.nats.end()
        self.postgres.end()

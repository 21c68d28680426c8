"""Redis for cells of a test run: Debian's server, in a temporary folder, on a port of its own."""

import contextlib
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

from .engine import Engine
from .ports import free_port

START_S = 20
# The server ends when this process does, however that ends: then its standard input is closed.
RUN = """
folder=$1; shift
redis-server --bind 127.0.0.1 "$@" --dir "$folder" --save '' --appendonly no --maxmemory-policy noeviction >>"$folder/log" 2>&1 &
pid=$!; echo $pid; read -r _; kill -KILL $pid; wait $pid
"""


class Redis(Engine):
    """A running server, which keeps nothing when it ends. One that is `secured` by an authority wants a certificate of it from whoever comes."""

    def __init__(self, secured=None):
        assert shutil.which("redis-server"), "redis-server is not installed: tests/interop/setup does it"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="carillon-redis-"))
        self.port, self._context = free_port(), None
        self.arguments = ["--port", str(self.port)]
        if secured:
            (certificate, key), (own, own_key) = secured.issue("localhost"), secured.issue("harness")
            self._context = ssl.create_default_context(cafile=secured.file)
            self._context.load_cert_chain(own, own_key)
            self.arguments = ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "yes"]
            self.arguments += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
            self.arguments += ["--tls-ca-cert-file", str(secured.file)]
        self.start()

    def start(self):
        """Starts it, on the port that it had before."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", RUN, "sh", str(self.folder), *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = int(self._shell.stdout.readline())
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.ask("PING")
                return
            try:
                self._shell.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"Redis does not start:\n{(self.folder / 'log').read_text()}")

    def ask(self, *words):
        """Asks it something; the answer as it comes."""
        with contextlib.ExitStack() as opened:
            asked = opened.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=5))
            if self._context:
                asked = opened.enter_context(self._context.wrap_socket(asked, server_hostname="localhost"))
            asked.sendall((" ".join(words) + "\r\n").encode())
            return asked.recv(1 << 20).decode()

    @property
    def url(self):
        return f"rediss://localhost:{self.port}" if self._context else f"redis://127.0.0.1:{self.port}"

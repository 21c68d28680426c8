"""One process of the real binary, on free ports, in a folder of its own."""

import asyncio
import itertools
import json
import os
import pathlib
import signal
import ssl
import subprocess

from . import postgres

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = pathlib.Path(os.environ.get("CARILLON", ROOT / "target/debug/carillon"))
START_S = 30
END_S = 20

_numbers = itertools.count(1)


class Server:
    """A running node. Only ever ends the process that it started."""

    def __init__(self, folder, environment=None, binary=BINARY, arguments=(), **settings):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        ready = self.folder / "ready.json"
        wanted = {
            "data_dir": self.data,
            "c2s.port": 0,
            "c2s_tls.port": 0,
            "websocket.port": 0,
            "http.port": 0,
            "shards": 2,
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        if postgres.WANTED and "store.url" not in wanted:
            wanted["store.url"] = postgres.url_for(str(pathlib.Path(wanted["data_dir"]).resolve()))
        self.store_url = wanted.get("store.url")
        command = [str(binary), "serve", "--ready-file", str(ready), *arguments]
        for key, value in wanted.items():
            command += ["--set", f"{key}={value}"]
        ready.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | (environment or {}),
            )
        self._await(ready)
        self.ports = json.loads(ready.read_text())
        self._check_pid()
        self.key = (self.data / "admin.key").read_text().strip()

    def _check_pid(self):
        assert self.ports["pid"] == self.process.pid

    def _await(self, ready):
        for _ in range(START_S * 50):
            if ready.exists():
                return
            try:
                code = self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the server ended with {code} before it was ready:\n{self.log.read_text()}")
        self.process.kill()
        raise AssertionError(f"the server was not ready within {START_S} s:\n{self.log.read_text()}")

    def port(self, name):
        return self.ports[name]

    @property
    def http(self):
        return f"http://127.0.0.1:{self.ports['http']}"

    @property
    def websocket(self):
        return f"ws://127.0.0.1:{self.ports['websocket']}/xmpp-websocket"

    def tls(self, verify_name=True):
        """A context that trusts this server's self-signed certificate and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=self.certificate)
        context.check_hostname = verify_name
        return context

    @property
    def certificate(self):
        return self.data / "self-signed.crt"

    async def command(self, *arguments, input=None):
        """Runs `carillon` beside the node, as an operator would, while the clients of the test go on."""
        return await asyncio.to_thread(run, *arguments, "--data-dir", str(self.data), input=input)

    def kill(self):
        """Ends the process as a power cut would."""
        self.process.kill()
        self.process.wait()

    def is_running(self):
        return self.process.poll() is None

    def end(self, expected=()):
        """Asks the process to end and says what was wrong with its life. Errors with an expected text are none."""
        if not self.is_running():
            raise AssertionError(f"the server died with {self.process.returncode}:\n{self.log.read_text()}")
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end in {END_S} s:\n{self.log.read_text()}") from None
        log = self.log.read_text()
        assert code == 0, f"the server ended with {code}:\n{log}"
        bad = [line for line in log.splitlines() if "panicked" in line or " ERROR " in line]
        bad = [line for line in bad if not any(text in line for text in expected)]
        assert not bad, "the server's log has errors:\n" + "\n".join(bad)


def run(*arguments, input=None, timeout=START_S, environment=None):
    """Runs a command of the binary to its end."""
    return subprocess.run(
        [str(BINARY), *arguments],
        input=input,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | (environment or {}),
    )


def unique(stem):
    """A name that no other test uses."""
    return f"{stem}{next(_numbers)}"

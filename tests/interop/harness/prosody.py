"""One Prosody on a free port, which keeps its accounts as files of XEP-0227."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess

from .ejabberd import certificate
from .ports import free_port

START_S = 60
CONFIGURATION = """
daemonize = false
run_as_root = true
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
c2s_direct_tls_ports = {{}}
s2s_ports = {{}}
c2s_require_encryption = true
authentication = "internal_hashed"
password_hash = "SHA-256"
storage = "xep0227"
modules_enabled = {{ "disco", "ping", "roster", "saslauth", "tls", "vcard", "private", "pep" }}
modules_disabled = {{ "s2s", "offline" }}
log = {{ debug = "{folder}/prosody.log" }}
ssl = {{ certificate = "{folder}/peer.crt", key = "{folder}/peer.key" }}
VirtualHost "{host}"
"""


def is_installed():
    return shutil.which("prosody") is not None


class Prosody:
    """A running Prosody of a host, whose accounts are those of a folder of files; ends with `end`."""

    def __init__(self, folder, host, accounts):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        data = self.folder / "data"
        data.mkdir()
        for file in accounts:
            shutil.copy(file, data / file.name)
        certificate(self.folder)
        text = CONFIGURATION.format(folder=self.folder, port=self.port, host=host)
        configuration = self.folder / "prosody.cfg.lua"
        configuration.write_text(text)
        self.output = (self.folder / "output").open("wb")
        self.process = subprocess.Popen(
            ["prosody", "--config", str(configuration)],
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
        )
        self._await()

    def _await(self):
        for _ in range(START_S * 20):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(timeout=0.05)
                raise AssertionError(f"prosody ended with {code}:\n{(self.folder / 'output').read_text()}")
        self.end()
        raise AssertionError(f"prosody was not ready within {START_S} s")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()

"""NATS for cells of a test run: Debian's server, in a temporary folder, on a port of its own."""

import json
import pathlib
import shutil
import subprocess
import tempfile

from .engine import Engine

START_S = 20
# The server ends when this process does, however that ends: then its standard input is closed.
RUN = """
folder=$1; port=$2; shift 2
"$@" -a 127.0.0.1 -p "$port" --ports_file_dir "$folder" >>"$folder/log" 2>&1 &
pid=$!; echo $pid; read -r _; kill $pid; wait $pid
"""


class Nats(Engine):
    """A running server. With JetStream, its streams are in files, which stay when it is stopped and started. One with a configuration is as that says."""

    def __init__(self, jetstream=False, binary="nats-server", configuration=None):
        assert shutil.which(binary), f"{binary} is not installed: tests/interop/setup does it"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="carillon-nats-"))
        self.command = [binary, *(["-js", "-sd", str(self.folder / "streams")] if jetstream else [])]
        if configuration:
            file = self.folder / "nats.conf"
            file.write_text(configuration)
            self.command += ["-c", str(file)]
        self.port = -1
        self.start()

    def start(self):
        """Starts it, on the port that it had before."""
        for left in self.folder.glob("nats-server_*.ports"):
            left.unlink()
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", RUN, "sh", str(self.folder), str(self.port), *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = int(self._shell.stdout.readline())
        for _ in range(START_S * 50):
            for ports in self.folder.glob("nats-server_*.ports"):
                text = ports.read_text()
                if text:
                    url = json.loads(text)["nats"][0]
                    self.port = int(url.rsplit(":", 1)[1])
                    return
            try:
                self._shell.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"NATS does not start:\n{(self.folder / 'log').read_text()}")

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

"""One ejabberd on free ports, in a folder of its own, with the configuration that bench/compare measures."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time

from .ports import free_port
from .server import ROOT

START_S = 60
# Among the modules of the configuration that bench/servers.sh fills in: rosters and an archive.
MORE = "mod_roster: {}\n  mod_mam:\n    default: always"
NODE = f"carillon-tests-{os.getpid()}@localhost"


class Ejabberd:
    """A running ejabberd, with more modules where they are named; ends with `end`."""

    def __init__(self, folder, modules=()):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        api = free_port()
        for name in ("spool", "logs"):
            (self.folder / name).mkdir()
        certificate(self.folder)
        text = (ROOT / "bench/peers/ejabberd.yml").read_text()
        more = "\n  ".join([MORE, *(f"{module}: {{}}" for module in modules)])
        for word, value in {"@WORK@": self.folder, "@PORT@": self.port, "@API_PORT@": api, "@MORE@": more}.items():
            text = text.replace(word, str(value))
        (self.folder / "ejabberd.yml").write_text(text)
        (self.folder / "ejabberdctl.cfg").write_text("INET_DIST_INTERFACE=127.0.0.1\n")
        # Erlang's port mapper stays when its nodes are gone: this one is ours, and ends with us. A node that starts one
        # itself does not wait until that listens, and ends when it was quicker.
        mapper = free_port()
        self.environment = {**os.environ, "ERL_EPMD_PORT": str(mapper)}
        self.sessions = f"curl -s -X POST -d '{{}}' http://127.0.0.1:{api}/api/connected_users_number | tr -dc 0-9"
        self.log = (self.folder / "log").open("wb")
        listen = ["epmd", "-address", "127.0.0.1", "-port", str(mapper)]
        self.mapper = subprocess.Popen(listen, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self._await(self.mapper, mapper)
        if os.getuid() == 0:
            self._give_away()
        self.process = subprocess.Popen(
            self._command("foreground"),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        self._await(self.process, self.port)

    @property
    def target(self):
        return f"127.0.0.1:{self.port}"

    def command(self, *words):
        """What `ejabberdctl` says to this."""
        done = subprocess.run(
            self._command(*words), env=self.environment, capture_output=True, text=True, timeout=START_S, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def end(self):
        stop = self._command("stop")
        subprocess.run(stop, env=self.environment, capture_output=True, timeout=START_S, check=False)
        try:
            self.process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.mapper.terminate()
        self.mapper.wait()
        self.log.close()

    def _command(self, *words):
        control = ["ejabberdctl", "-n", NODE, "-d", str(self.folder), "-s", str(self.folder / "spool")]
        control += ["-l", str(self.folder / "logs"), *words]
        if os.getuid() != 0:
            return control
        # It starts as its own user only; by way of su it would have 1,024 descriptors.
        user = ["setpriv", "--reuid=ejabberd", "--regid=ejabberd", "--clear-groups", "env", f"HOME={self.folder}"]
        return user + control

    def _give_away(self):
        user = pwd.getpwnam("ejabberd")
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)
        # pytest keeps its folders to itself; ejabberd must get through to its own.
        for parent in self.folder.parents:
            if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o001 == 0:
                parent.chmod(parent.stat().st_mode | 0o011)

    def _await(self, process, port):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                try:
                    code = process.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    continue
                raise AssertionError(f"{process.args[0]} ended with {code}: {self.said()}") from None
        raise AssertionError(f"{process.args[0]} was not ready within {START_S} s: {self.said()}")

    def said(self):
        return (self.folder / "log").read_text(errors="replace")


def is_installed():
    return shutil.which("ejabberdctl") is not None


def certificate(folder):
    """A self-signed certificate and its key, in one file."""
    key, chain = folder / "peer.key", folder / "peer.crt"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run([*make, "-keyout", key, "-out", chain], capture_output=True, check=True)
    (folder / "peer.pem").write_text(chain.read_text() + key.read_text())

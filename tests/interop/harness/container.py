"""A container of the image under Debian's OCI runtime: its root read-only, no capability, the network of the test."""

import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

from .server import START_S

USER = 65532


class Image:
    """An OCI archive, and its files in a folder."""

    def __init__(self, archive, folder):
        with tarfile.open(archive) as tar:
            self._blobs = {name: tar.extractfile(name).read() for name in tar.getnames()}
        [listed] = json.loads(self._blobs["index.json"])["manifests"]
        self.digest, self.name = listed["digest"], listed["annotations"]["org.opencontainers.image.ref.name"]
        self.manifest = json.loads(self.blob(self.digest))
        self.config = json.loads(self.blob(self.manifest["config"]["digest"]))
        self.root = pathlib.Path(folder)
        for layer in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(layer["digest"]))) as tar:
                tar.extractall(self.root, numeric_owner=True, filter="fully_trusted")

    def blob(self, digest):
        return self._blobs["blobs/" + digest.replace(":", "/")]


class Container:
    """A container that runs until it is ended."""

    RUNTIME = "runc"

    @classmethod
    def why_not(cls):
        """Why this machine runs no containers; nothing if it does."""
        if os.getuid() != 0:
            return "containers are started as root"
        return "" if shutil.which(cls.RUNTIME) else f"Debian's {cls.RUNTIME} is not installed"

    def __init__(self, image, folder, arguments=(), command=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.name = f"carillon-test-{os.getpid()}-{self.folder.name}"
        self.data = self.folder / "data"
        if not self.data.exists():
            self.data.mkdir()
            os.chown(self.data, USER, USER)
        spec = ["env", "-C", str(self.folder), self.RUNTIME, "spec"]
        (self.folder / "config.json").unlink(missing_ok=True)
        subprocess.run(spec, check=True, capture_output=True)
        bundle = json.loads((self.folder / "config.json").read_text())
        settings = image.config["config"]
        uid, gid = (int(n) for n in settings["User"].split(":"))
        bundle["process"] |= {
            "terminal": False,
            "user": {"uid": uid, "gid": gid},
            "args": command or [*settings["Entrypoint"], *arguments],
            "env": settings["Env"],
            "cwd": settings["WorkingDir"],
            "capabilities": {},
            "noNewPrivileges": True,
        }
        bundle["process"].pop("rlimits", None)
        bundle["root"] = {"path": str(image.root), "readonly": True}
        [volume] = settings["Volumes"]
        bundle["mounts"] += [
            {"destination": volume, "type": "bind", "source": str(self.data), "options": ["rbind", "rw"]},
        ]
        bundle["linux"]["namespaces"] = [n for n in bundle["linux"]["namespaces"] if n["type"] != "network"]
        bundle["linux"].pop("resources", None)
        (self.folder / "config.json").write_text(json.dumps(bundle))
        self.log = self.folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._runtime(), "run", "--bundle", str(self.folder), self.name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _runtime(self):
        return [self.RUNTIME, f"--root={self.folder}/state"]

    def ready(self):
        """Waits until the node is ready; its ports."""
        path = self.data / "ready.json"
        for _ in range(START_S * 50):
            if path.exists():
                return json.loads(path.read_text())
            try:
                code = self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the container ended with {code}:\n{self.log.read_text()}")
        raise AssertionError(f"the node is not ready:\n{self.log.read_text()}")

    def run(self, *words):
        """Runs a command in the container."""
        return subprocess.run(
            [*self._runtime(), "exec", self.name, *words], capture_output=True, text=True, timeout=60, check=False
        )

    def signal(self, name):
        """Signals its PID 1."""
        subprocess.run([*self._runtime(), "kill", self.name, name], check=True)

    def close(self):
        """Ends it if it has not ended."""
        if self.process.poll() is None:
            subprocess.run([*self._runtime(), "kill", self.name, "KILL"], check=False)
        self.process.wait(START_S)

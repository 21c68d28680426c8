"""Pods of the Helm chart as processes: their command, environment, files and probes as rendered, on loopback addresses of their own."""

import base64
import contextlib
import json
import os
import pathlib
import random
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import yaml

from .machine import Machine
from .server import BINARY, ROOT, START_S
from .watched import Process

CHART = ROOT / "deploy/helm/carillon"
# Built by `setup` from Go's modules.
TOOLS = pathlib.Path(os.environ.get("CHART_TOOLS", ROOT / "target/interop/go"))
USER = "65532:65532"


def tool(name):
    """Where a program of `setup` is; nothing where it is not."""
    found = TOOLS / name
    return str(found) if found.exists() else shutil.which(name)


def helm(*arguments, fails=False):
    """Runs helm; what it prints, or how it failed."""
    done = subprocess.run([tool("helm"), *map(str, arguments)], capture_output=True, text=True, timeout=80, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def render(*arguments):
    """The objects of a release that is named `carillon`."""
    return [each for each in yaml.safe_load_all(helm("template", "carillon", CHART, *arguments)) if each]


def find(objects, kind, name=None):
    """The only object of a kind, or of a kind and a name."""
    [found] = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    return found


class Pod:
    """A pod of a StatefulSet."""

    def __init__(self, folder, objects, statefulset, ordinal, secrets=None, shared=()):
        self.name = f"{statefulset['metadata']['name']}-{ordinal}"
        self.spec = statefulset["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self.objects, self.secrets = objects, secrets or {}
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir()
        (self.folder / "machine").mkdir()
        self.machine = Machine(self.folder / "machine")
        for path in shared:
            # A socket that is seen through an overlay is another one.
            at = f"{self.machine.root}{path}"
            subprocess.run([*self.machine.inside, "mount", "--bind", str(path), at], check=True)
        # An address that nothing else uses, so that the ports are those of the chart.
        self.address = f"127.{random.randint(10, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
        self.log = self.folder / "log"
        self.process = None
        self.machine.ok("ln", "-sfT", BINARY, "/usr/local/bin/carillon")
        self._mount()

    def _mount(self):
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            volume, path = volumes.get(mount["name"], {"emptyDir": {}}), mount["mountPath"]
            if "emptyDir" in volume:
                self.machine.ok("mkdir", "-p", path)
                self.machine.ok("chown", USER, path)
            for name, content in self._files(volume).items():
                if mount.get("subPath") in (None, name):
                    self._write(path if "subPath" in mount else f"{path}/{name}", content)

    def _files(self, volume):
        if "configMap" in volume:
            data = find(self.objects, "ConfigMap", volume["configMap"]["name"])["data"]
            return {name: text.encode() for name, text in data.items()}
        if "secret" in volume:
            return self.secrets[volume["secret"]["secretName"]]
        files = {}
        for source in volume.get("projected", {}).get("sources", []):
            content = self._secret(source["secret"]["name"])
            files |= {item["path"]: content[item["key"]] for item in source["secret"]["items"]}
        return files

    def _secret(self, name):
        if name in self.secrets:
            return self.secrets[name]
        data = find(self.objects, "Secret", name)["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def _write(self, path, content):
        self.machine.ok("mkdir", "-p", str(pathlib.PurePath(path).parent))
        subprocess.run(self.machine.command("tee", path), input=content, stdout=subprocess.DEVNULL, check=True)

    def _environment(self):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        for each in self.container["env"]:
            environment[each["name"]] = (
                each.get("value") or {"metadata.name": self.name}[each["valueFrom"]["fieldRef"]["fieldPath"]]
            )
        return environment | {"CARILLON_LISTEN_ADDRESS": self.address, "CARILLON_HTTP_ADDRESS": self.address}

    def start(self):
        with self.log.open("ab") as log:
            self._first = subprocess.Popen(
                self.machine.command(*self.container["command"], user=USER),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.process = Process(self._first.pid)

    def port(self, name):
        """The number of a port by its name, as services and probes use it."""
        name = {"c2s": "xmpp", "c2s_tls": "xmpps"}.get(name, name)
        [port] = [p["containerPort"] for p in self.container["ports"] if p["name"] == name]
        return port

    @property
    def http(self):
        return f"http://{self.address}:{self.port('http')}"

    @property
    def key(self):
        return self.machine.ok("cat", "/data/admin.key").strip()

    def tls(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.machine.ok("cat", "/data/self-signed.crt"))
        return context

    def probe(self, kind):
        """Whether a probe succeeds."""
        get = self.container[kind]["httpGet"]
        url = f"http://{self.address}:{self.port(get['port'])}{get['path']}"
        with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
        return False

    def wait_until_ready(self):
        deadline = time.monotonic() + START_S
        while not self.probe("readinessProbe"):
            assert not self.process.has_ended(0.05), self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()

    def stop(self):
        """Ends it as Kubernetes does: preStop first, then SIGTERM; both within the period of grace."""
        grace = self.spec["terminationGracePeriodSeconds"]
        began = time.monotonic()
        hook = self.container["lifecycle"]["preStop"]["exec"]["command"]
        done = subprocess.run(
            self.machine.command(*hook, user=USER),
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=grace,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.log.read_text()
        self._first.terminate()
        assert self._first.wait(grace - (time.monotonic() - began)) == 0, self.log.read_text()

    def close(self):
        if self.process:
            self.process.close()
            self._first.wait()
        self.machine.end()


def faults(pod):
    """The lines of its log that tell of an error."""
    lines = [json.loads(line) for line in pod.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("level") == "ERROR"]

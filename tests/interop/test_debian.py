"""The Debian package: what is in it, and installing, upgrading under load and purging it on a copy of this machine."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from harness.machine import Machine
from harness.server import BINARY, ROOT, START_S, run
from harness.watched import Process

BUILD = ROOT / "deploy/debian/build"
# What the package does not bring and its upgrade must not lose.
PLAYERS = 1000
SCENARIO = f"""
name = "package"
summary = "Players talk while the package is upgraded."
[players]
count = {PLAYERS}
[[phases]]
do = "login"
[[phases]]
do = "talk"
rate = {{ shape = "per-player", rate = 1 }}
for = "12s"
timeout = "60s"
"""

pytestmark = [
    # Packages are made and installed besides; what is waited for has deadlines of its own.
    pytest.mark.timeout(240),
    pytest.mark.skipif(os.getuid() != 0, reason="packages are installed as root"),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg here"),
]


def build(folder, version, binary=BINARY):
    """Makes the package. It is compressed little: that is not what is tested."""
    options = {"VERSION": version, "XZ_LEVEL": "0", "CARILLON_RUN": str(BINARY)}
    command = [str(BUILD), str(binary), str(folder)]
    done = subprocess.run(command, env=os.environ | options, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return build(tmp_path_factory.mktemp("package"), "0.1.0")


@pytest.fixture(scope="module")
def successor(tmp_path_factory):
    """The package of the next release, whose binary is another file."""
    folder = tmp_path_factory.mktemp("successor")
    (folder / "release").write_text("0.1.1")
    binary = folder / "carillon"
    command = ["objcopy", f"--add-section=.release={folder}/release", str(BINARY), str(binary)]
    subprocess.run(command, check=True, timeout=60)
    return build(folder, "0.1.1", binary)


@pytest.fixture
def machine(tmp_path):
    # dpkg's own users come into the folder.
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    try:
        machine = Machine(tmp_path)
    except OSError as why:
        pytest.skip(str(why))
    yield machine
    machine.end()


class Node:
    """The node of the package, started as its unit says. Its process is another one after an upgrade."""

    def __init__(self, machine, log, **settings):
        self.machine, self.log = machine, log
        unit = dict(
            line.split("=", 1)
            for line in machine.ok("cat", "/lib/systemd/system/carillon.service").splitlines()
            if line.startswith(("ExecStart=", "User=", "Group="))
        )
        options = ["--ready-file=/var/lib/carillon/ready.json"]
        for key in ("c2s", "c2s_tls", "websocket", "http"):
            options.append(f"--set={key}.port=0")
        options += [f"--set={key.replace('__', '.')}={value}" for key, value in settings.items()]
        command = machine.command(*unit["ExecStart"].split(), *options, user=f"{unit['User']}:{unit['Group']}")
        with log.open("wb") as out:
            self._first = subprocess.Popen(
                command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        self._wait_for_it()
        self.process = Process(self.pid())

    def _wait_for_it(self):
        for _ in range(START_S * 50):
            done = self.machine.run("cat", "/var/lib/carillon/ready.json")
            if done.returncode == 0:
                self.ports = json.loads(done.stdout)
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._first.wait(timeout=0.02)
                raise AssertionError(f"the node does not start:\n{self.log.read_text()}")
        raise AssertionError(f"the node is not ready:\n{self.log.read_text()}")

    def pid(self):
        return json.loads(self.machine.ok("cat", "/var/lib/carillon/node.json"))["pid"]

    def follow(self):
        """The process that has the node now; that the former one ended."""
        former, self.process = self.process, Process(self.pid())
        assert former.has_ended(START_S), self.log.read_text()
        former.close()

    def binary(self):
        """A digest of the binary that it runs."""
        return hashlib.sha256(pathlib.Path(f"/proc/{self.process.pid}/exe").read_bytes()).hexdigest()

    def close(self):
        self.process.close()
        self._first.wait()


def test_built_twice_it_is_the_same(package, tmp_path):
    assert build(tmp_path, "0.1.0").read_bytes() == package.read_bytes()


@pytest.mark.skipif(shutil.which("lintian") is None, reason="Debian's lintian is not installed")
def test_lintian_finds_nothing(package):
    command = ["lintian", "--allow-root", "--fail-on=error,warning"]
    checked = subprocess.run([*command, str(package)], capture_output=True, text=True, timeout=200, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr


def test_what_it_installs(machine, package, tmp_path):
    before = machine.written()
    machine.ok("dpkg", "--install", package)
    owners = "%U:%G %a"
    assert machine.ok("stat", "-c", owners, "/etc/carillon", "/var/lib/carillon").splitlines() == [
        "root:carillon 750",
        "carillon:carillon 700",
    ]
    assert machine.ok("getent", "passwd", "carillon").strip().endswith(":/var/lib/carillon:/usr/sbin/nologin")
    # A node can be started as it is, and its sample has every setting.
    assert machine.run("carillon", "config", "check", "--config", "/etc/carillon/carillon.toml").returncode == 0
    assert "data_dir" in machine.ok("cat", "/usr/share/doc/carillon/examples/carillon.toml")
    for page in ("carillon.1", "carillon-upgrade.1", "carillon-load-run.1"):
        assert ".TH" in machine.ok("zcat", f"/usr/share/man/man1/{page}.gz")
    complete = "source /usr/share/bash-completion/completions/carillon; complete -p carillon"
    assert "carillon" in machine.ok("bash", "-c", complete)
    unit = tmp_path / "carillon.service"
    unit.write_text(machine.ok("cat", "/lib/systemd/system/carillon.service"))
    assert "/usr/local" not in unit.read_text()
    # 1.5 of 10 at most, times ten.
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-1000:] + rated.stderr
    # What an administrator wrote survives an upgrade and a removal; a purge leaves nothing.
    machine.ok("sh", "-c", "echo '# mine' >>/etc/carillon/carillon.toml; touch /var/lib/carillon/admin.key")
    machine.ok("dpkg", "--remove", "carillon")
    assert "# mine" in machine.ok("cat", "/etc/carillon/carillon.toml")
    machine.ok("test", "-e", "/var/lib/carillon/admin.key")
    machine.ok("dpkg", "--purge", "carillon")
    left = [path for path in machine.written() - before if "carillon" in path]
    assert not left
    assert machine.run("getent", "passwd", "carillon").returncode == 2
    assert machine.run("getent", "group", "carillon").returncode == 2


def typed():
    """The commands of the page, as they stand there."""
    page = (ROOT / "docs/book/install.md").read_text()
    section = re.search(r"^## The Debian package$(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^# (.+)$", section, re.MULTILINE)


def test_from_the_package_to_a_delivered_notification(machine, package, tmp_path):
    install, create, connect, send = typed()
    began = time.monotonic()
    machine.ok("sh", "-c", f"cd {package.parent} && {install}")
    node = Node(machine, tmp_path / "log")
    device = None
    try:
        machine.ok("sh", "-c", create)
        device = subprocess.Popen(
            machine.command("sh", "-c", f"exec {connect}"),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "alice@localhost" in device.stdout.readline()
        assert "acknowledged" in machine.ok("sh", "-c", send)
        took = time.monotonic() - began
        print(f"delivered {took:.1f} s after apt-get began")
        assert took < 60
        assert any('{"hello":1}' in line for line in iter(device.stdout.readline, ""))
    finally:
        if device:
            device.kill()
            device.wait()
        node.close()


def test_an_upgrade_of_the_package_disconnects_nobody(machine, package, successor, tmp_path):
    machine.ok("dpkg", "--install", package)
    node = Node(machine, tmp_path / "log", registration__in_band="true", limits__profile="benchmark")
    try:
        before = node.binary()
        scenario, report = tmp_path / "scenario.toml", tmp_path / "report.json"
        scenario.write_text(SCENARIO)
        target = ["--target", f"127.0.0.1:{node.ports['c2s']}", "--domain", "localhost", "--password", "pw"]
        upgrade = " ".join(machine.command("env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "dpkg", "--install", successor))
        when = ["--upgrade-cmd", upgrade, "--upgrade-at", "2s", "--upgrade-phase", "talk"]
        done = run("load", "run", str(scenario), *target, "--register", *when, "--report", str(report), timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr + node.log.read_text()
        seen = json.loads(report.read_text())["upgrade"]
        assert seen["exitCode"] == 0, seen
        assert (seen["disconnects"], seen["lost"], seen["duplicates"], seen["outOfOrder"]) == (0, 0, 0, 0), seen
        node.follow()
        installed = machine.ok("sha256sum", "/usr/bin/carillon").split()[0]
        assert node.binary() == installed != before
        # Where the node refuses, dpkg goes on and says what to do.
        machine.ok("carillon", "drain", "--data-dir", "/var/lib/carillon", "--over", "10m", "--no-wait")
        done = machine.run("dpkg", "--install", package)
        assert (done.returncode, "restart it when it suits you" in done.stderr) == (0, True), done
        assert node.pid() == node.process.pid
        assert not node.process.has_ended()
    finally:
        node.close()

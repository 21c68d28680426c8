"""The bell of the experiment, sixty times as fast, on real edges: no login is refused, also while edges are drained."""

import asyncio
import contextlib
import json
import os
import signal
import sys

import pytest

from harness.autoscale import Scaler
from harness.edges import edges, figures
from harness.inbox import deadline
from harness.program import Program
from harness.server import ROOT, Server, run

# Each takes two minutes: others by hand, BELL_TARGETS=50,60,70.
TARGETS = [int(target) for target in os.environ.get("BELL_TARGETS", "70").split(",")]
PLAYERS = 60
# An edge takes so many new connections per second; the bell goes from 5 to 60.
CARRIES = 20
SCENARIO = f"""
name = "bell"
summary = "The bell of the experiment: a minute is a second, and a fifth of the rate."
[players]
count = {PLAYERS}
[[phases]]
do = "login"
rate = 5
[[phases]]
name = "steady"
do = "churn"
rate = 5
for = "15s"
[[phases]]
name = "rise"
do = "churn"
rate = {{ shape = "ramp", from = 5, to = 60, over = "45s" }}
for = "45s"
[[phases]]
name = "fall"
do = "churn"
rate = {{ shape = "ramp", from = 60, to = 5, over = "15s" }}
for = "15s"
[[phases]]
name = "steady-again"
do = "churn"
rate = 5
for = "15s"
"""
# Who is on an edge that is drained loses its session, which the load tester counts as a failure and does not begin anew: there are more players than are lost.
MANY = 160
AFTERWARDS = f"""
name = "afterwards"
summary = "Players come and go while the edges that are not needed any more are drained."
[players]
count = {MANY}
[[phases]]
do = "login"
rate = 8
[[phases]]
name = "steady"
do = "churn"
rate = 4
for = "40s"
"""
POLICY = """
[policy]
target = {}
min = 1
max = 8
interval = "1s"
effect = "3s"
stale_after = "5s"
# Longer than it is until the end of the bell.
down = {{ after = "40s", below = 80 }}
"""


def running(folder):
    return [edge for edge in edges(folder) if edge["state"] == "running"]


def leaving(scaler):
    """The edges that were being taken away at some time until now."""
    return {name for line in scaler.decisions() for name in line.get("leaving", [])}


class Front:
    """What clients connect to: it gives each connection to the next edge that runs."""

    def __init__(self, folder):
        self.folder, self.turn = folder, 0

    async def _serve(self, reader, writer):
        there = running(self.folder)
        edge = there[self.turn % len(there)]
        self.turn += 1
        there, back = await asyncio.open_connection("127.0.0.1", edge["port"])
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def __aexit__(self, *error):
        self.server.close()


def template(folder):
    """The data of a node that has the players' accounts."""
    # Keys are derived once per login: with few rounds the machine is not what limits it.
    server = Server(folder, registration__in_band="true", limits__profile="benchmark", shards=1)
    scenario = ROOT / "crates/load/scenarios/login-storm.toml"
    players = ["--players", str(MANY), "--register", "--set", "settle.for=0.1"]
    target = ["--target", f"127.0.0.1:{server.port('c2s')}", "--domain", "localhost", "--password", "secret"]
    done = run("load", "run", str(scenario), *players, *target, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    server.end()
    for name in ("node.json", "admin.key"):
        (server.data / name).unlink(missing_ok=True)
    return server.data


async def load(port, folder, scenario=SCENARIO):
    (folder / "bell.toml").write_text(scenario)
    target = ["--target", f"127.0.0.1:{port}", "--domain", "localhost", "--password", "secret"]
    report = ["--report", str(folder / "report.json"), "--assert", f"lost<={MANY}"]
    program = await Program.open("load", "run", str(folder / "bell.toml"), *target, *report)
    try:
        await program.process.wait()
    finally:
        if program.process.returncode is None:
            program.process.kill()
    return json.loads((folder / "report.json").read_text())


async def ended(scaler, count):
    """Waits until the driver has only so many edges."""
    async with deadline("edges that are drained", 150):
        while len(await asyncio.to_thread(edges, scaler.folder / "edges")) > count:
            # The first may take longer than a line is waited for.
            with contextlib.suppress(AssertionError):
                await scaler.program.lines.take(lambda line: "stopped" in line, "an edge that is stopped")


@pytest.mark.timeout(400)
@pytest.mark.embedded
@pytest.mark.parametrize("target", TARGETS)
async def test_no_login_is_refused_while_the_bell_rings(tmp_path, monkeypatch, target):
    folder = tmp_path / "edges"
    folder.mkdir()
    (tmp_path / "node").mkdir()
    template(tmp_path / "node").rename(folder / "template")
    limits = {"limits.connect_rate_per_second": CARRIES, "limits.connections_per_address": 0}
    monkeypatch.setenv("EDGE_SETTINGS", json.dumps(limits))
    script = [sys.executable, str(ROOT / "tests/interop/harness/edges.py"), str(folder)]
    words = [f"{verb} = {json.dumps([*script, verb])}" for verb in ("list", "start", "drain", "stop")]
    source = f'kind = "carillon"\nper_unit = {{ logins = {CARRIES} }}'
    scaler = Scaler(tmp_path, source, 'kind = "exec"\n' + "\n".join(words), POLICY.format(target))
    scaler.program = await scaler.start("--apply")
    try:
        await scaler.program.line("up", "minimum")
        async with deadline("the first edge", 30):
            # It is decided before it is started.
            while not await asyncio.to_thread(running, folder):
                pass
        async with Front(folder) as port:
            report = await load(port, tmp_path)
            drained = leaving(scaler)
            afterwards = await load(port, tmp_path, AFTERWARDS)
            drained = leaving(scaler) - drained
        most = max(line["granted"] or 0 for line in scaler.decisions())
        refused = sum(line["measures"].get("refused", 0) for line in scaler.decisions() if "measures" in line)
        await ended(scaler, 1)
        own = [await asyncio.to_thread(figures, edge) for edge in edges(folder)]
    finally:
        scaler.program.process.terminate()
        await scaler.program.process.wait()
        for edge in edges(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(edge["pid"], signal.SIGTERM)
    assert refused == 0
    assert report["failed"] == 0, report
    assert report["metrics"]["login"]["count"] > 1500, report["metrics"]
    assert most >= 4, "the peak needs four edges at the least"
    stopped = list(folder.glob("edge-*/stopped.json"))
    assert len(stopped) >= 3
    # While clients came and went, and not only afterwards.
    assert drained, "no edge was drained under load"
    # Each edge, those that are gone too, counted for itself what it turned away.
    own += [json.loads(file.read_text())["figures"] for file in stopped]
    logins = report["metrics"]["login"]["count"] + afterwards["metrics"]["login"]["count"]
    assert afterwards["metrics"]["login"]["count"] > MANY + 60, afterwards["metrics"]
    assert sum(figure["logins"] for figure in own) >= logins
    assert [(figure["refused"], figure["failed"]) for figure in own] == [(0, 0)] * len(own)
    decided = [line["action"] for line in scaler.decisions()]
    assert decided.count("up") >= 3
    assert decided.count("down") >= 1

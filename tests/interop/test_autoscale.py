"""The autoscaler against what it measures and commands: pages, edges, Kubernetes, AWS."""

import asyncio
import datetime
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

from harness.autoscale import (
    KEDA,
    KEDAS_HEADERS,
    KEDAS_REQUEST,
    NEVER_DOWN,
    POLICY,
    Demand,
    Kubernetes,
    Page,
    Scaler,
    acts,
    asked,
    by_exec,
    edges_in,
    page,
    said_to_keda,
)
from harness.server import run


def test_a_dry_run_changes_nothing_and_everything_is_explained(tmp_path):
    with Demand(7.0) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        done = scaler.run(2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dry run: nothing is changed; with --apply it is\n")
    # The second decision is the same: nothing was done.
    assert acts(scaler.decisions()) == [("up", "over-target", 10, "dry-run")] * 2
    first = scaler.decisions()[0]
    assert (first["demand"], first["granted"], first["target"], first["policy"]) == (7.0, 1, 70.0, "demand")
    assert (first["min"], first["max"], first["effect_ms"]) == (1, 100, 200)
    assert first["floor"] == {"units": 1, "by": "minimum"}
    told = run("autoscale", "explain", str(scaler.log))
    assert told.returncode == 0, told.stderr
    assert re.search(r"up +1 +10 +10 +7(\.00)? +7.00 units are over the target +dry run", told.stdout), told.stdout
    as_json = run("autoscale", "explain", str(scaler.log), "--json", "--last", "1")
    assert json.loads(as_json.stdout) == scaler.decisions()[1:]


def test_up_at_once_and_down_after_a_while(tmp_path):
    with Demand(7.0, 14.0, 3.5) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        done = scaler.run(18, "--apply")
    assert done.returncode == 0, done.stderr
    lines = scaler.decisions()
    assert acts(lines[:2])[0] == ("up", "over-target", 10, "done")
    assert lines[1]["action"] == "up"
    assert lines[1]["units"] >= 20
    down = [line for line in lines if line["action"] == "down"]
    assert [line["units"] for line in down][-1:] == [5], acts(lines)
    assert all(line["reason"] == "below" for line in down)


async def test_keda_reads_what_there_is_to_be(tmp_path):
    with Demand(7.0) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        program = await scaler.start("--apply")
        try:
            url = re.search(r"serves (http://\S+/)", await program.line("serves"))[1]
            await program.line("hold")
            answer = await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(url, timeout=5)))
            as_keda = [await asked(url, KEDAS_REQUEST.format(header)) for header in KEDAS_HEADERS]
            refused = await asked(url, KEDAS_REQUEST.format("").replace("GET", "POST"))
        finally:
            program.process.terminate()
            await program.process.wait()
    assert answer == {"units": 10}
    # It wants 200, and a number at `valueLocation`.
    for head, body in (answer.split("\r\n\r\n") for answer in as_keda):
        assert head.splitlines()[0] == "HTTP/1.1 200 OK"
        assert f"content-length: {len(body)}" in head.splitlines()
        assert type(json.loads(body)["units"]) is int
    assert refused.startswith("HTTP/1.1 405 ")
    # The next one goes on from there, and not from the minimum.
    with Demand(7.0) as demand:
        again = Scaler(tmp_path, page(demand), KEDA)
        assert again.run(1, "--apply").returncode == 0
    assert again.decisions()[-1]["granted"] == 10


FLOOR = 'min = 1\nschedule = [{ from = "2020-01-01T00:00:00Z", until = "2120-01-01T00:00:00Z", units = 3 }]'


@pytest.mark.parametrize(
    ("demand", "floor", "arguments", "expected"),
    [
        # KEDA leaves the replicas as they are when the page has no number; a number, such as the minimum, would be put into force.
        (None, "min = 1", ["--apply"], (503, None)),
        (None, FLOOR, ["--apply"], (503, None)),
        (7.0, "min = 1", [], (503, None)),
        (0.1, "min = 1", ["--apply"], (200, 1)),
        (0.1, FLOOR, ["--apply"], (200, 3)),
    ],
)
async def test_keda_is_told_what_data_decided_and_nothing_else(tmp_path, demand, floor, arguments, expected):
    # Once per hour: the first decision is the only one.
    policy = POLICY.replace("min = 1", floor).replace('"200ms"', '"1h"').replace('"1s"', '"1h"')
    with Demand(demand) as source:
        assert await said_to_keda(Scaler(tmp_path, page(source), KEDA, policy), *arguments) == expected
    # What was decided before goes on, and what was only considered does not.
    with Demand(None) as source:
        again = await said_to_keda(Scaler(tmp_path, page(source), KEDA, policy), "--apply")
        assert again == expected
        assert await said_to_keda(Scaler(tmp_path, page(source), KEDA, policy)) == (503, None)


def test_without_data_nothing_is_taken_away(tmp_path):
    with Demand(1.0, 1.0, None) as demand:
        policy = POLICY.replace("min = 1", 'min = 1\nstale_after = "400ms"')
        scaler = Scaler(tmp_path, page(demand), KEDA, policy)
        scaler.log.write_text("")
        done = scaler.run(8, "--apply")
    assert done.returncode == 0, done.stderr
    lines = scaler.decisions()
    assert {line["action"] for line in lines[2:]} == {"hold"}
    assert "no-data" in {line["reason"] for line in lines}
    assert lines[-1]["reason"] == "stale"
    away = next(line for line in lines if line["reason"] == "no-data")
    assert "it answers 503" in away["why"]


def test_one_scaler_at_a_time(tmp_path):
    with Demand(7.0) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        with scaler.log.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = scaler.run(1)
    assert done.returncode == 2
    assert "another scaler holds this decision log; one is active at a time" in done.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("min = 1\n", "min = 101\n"), "policy.min: 101 is more than max, 100"),
        (("log = ", 'log_bytes_max = "1KiB"\nlog = '), "`1KiB` is no size of at least 64KiB"),
        (("target = 70", "target = 0"), "policy.target: expected more than 0 and at most 100 percent"),
        (("min = 1\n", 'min = 1\nname = "demnad"\n'), 'policy.name: "demnad" is no policy'),
        (("min = 1\n", "min = 1\nmni = 1\n"), "unknown field `mni`"),
        (('kind = "keda"', 'kind = "kdea"'), "unknown variant `kdea`"),
        (('demand = "/load', 'demand = "load'), "source.demand:"),
        (("min = 1\n", 'min = 1\nschedule = [{ from = "soon", until = "x", units = 3 }]\n'), "policy.schedule.from:"),
    ],
)
def test_settings_that_cannot_be_are_said(tmp_path, change, why):
    with Demand(1.0) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        text = scaler.file.read_text()
        assert change[0] in text
        scaler.file.write_text(text.replace(*change, 1))
        done = scaler.run(1)
    assert done.returncode == 2
    assert why in done.stderr, done.stderr


def metrics(logins, refused=0, connections=3):
    text = f"""carillon_uptime_seconds 1000
carillon_logins_total {logins}
carillon_login_failures_total{{reason="not-authorized"}} 2
carillon_connections_refused_total{{reason="rate"}} {refused}
carillon_received_bytes_total 0
carillon_sent_bytes_total 0
process_cpu_seconds_total 1
carillon_connections {connections}
process_resident_memory_bytes 1
"""
    return 200, text.encode(), {"content-type": "text/plain"}


def test_demand_is_what_was_refused_too_and_a_counter_that_goes_back_holds(tmp_path):
    pages = [metrics(100), metrics(101, refused=1000), metrics(5), metrics(6, refused=1000)]
    with Page(lambda *_: pages.pop(0) if len(pages) > 1 else pages[0]) as node:
        source = f'kind = "carillon"\nnodes = ["{node.url}"]\nper_unit = {{ logins = 1000 }}'
        scaler = Scaler(tmp_path, source, KEDA, NEVER_DOWN)
        assert scaler.run(3, "--apply").returncode == 0
    first, second, third = scaler.decisions()
    assert first["reason"] == "no-data"
    assert "read for the first time" in first["why"]
    assert second["action"] == "up"
    assert second["demand"] > 2
    # One login came for a thousand that were refused, however long it was between the two looks.
    assert second["consumed"] < second["demand"] / 100
    assert second["measures"]["refused"] > 2000
    assert third["action"] == "hold"
    assert "its process was started anew" in third["why"]


@pytest.mark.parametrize(
    ("per_unit", "figures", "demand"),
    [
        ("connections = 10", {"connections": 30}, 3.0),
        ("memory = 2e9", {"memory": 5e9}, 2.5),
        ("bytes = 1000", {"bytes_per_second": 4000}, 4.0),
        ("cpu = 0.5", {"cpu_per_second": 1.25}, 2.5),
        # The kind that needs most units decides.
        ("connections = 10, memory = 1e9, cpu = 4", {"connections": 30, "memory": 5e9, "cpu_per_second": 2}, 5.0),
    ],
)
def test_each_kind_of_demand_is_counted_in_units(tmp_path, per_unit, figures, demand):
    began = time.time()

    def answer(*_):
        passed = time.time() - began
        status, text, headers = metrics(0, connections=figures.get("connections", 0))
        values = {
            "carillon_received_bytes_total": figures.get("bytes_per_second", 0) * passed * 0.75,
            "carillon_sent_bytes_total": figures.get("bytes_per_second", 0) * passed * 0.25,
            "process_cpu_seconds_total": figures.get("cpu_per_second", 0) * passed,
            "process_resident_memory_bytes": figures.get("memory", 1),
        }
        lines = [line.split()[0] for line in text.decode().splitlines()]
        told = dict(zip(lines, text.decode().splitlines(), strict=True))
        told |= {name: f"{name} {value}" for name, value in values.items()}
        return status, ("\n".join(told.values()) + "\n").encode(), headers

    with Page(answer) as node:
        source = f'kind = "carillon"\nnodes = ["{node.url}"]\nper_unit = {{ {per_unit} }}'
        scaler = Scaler(tmp_path, source, KEDA, NEVER_DOWN)
        assert scaler.run(4).returncode == 0
    lines = [line["demand"] for line in scaler.decisions() if line["demand"] is not None]
    # Rates are of readings that are some milliseconds away from when they are taken.
    assert lines[-1] == pytest.approx(demand, rel=0.25), lines


def test_a_json_page_says_what_is_done_and_when(tmp_path):
    at = datetime.datetime.now(datetime.UTC)
    pages = [{"asked": 210, "done": 140, "measured": (at - datetime.timedelta(seconds=s)).isoformat()} for s in (2, 1)]
    with Page(lambda *_: (200, pages.pop(0) if len(pages) > 1 else pages[0])) as node:
        source = page(node, "/asked") + '\nconsumed = "/done"\nat = "/measured"\nper_unit = 70'
        policy = POLICY.replace("min = 1", 'min = 1\nstale_after = "1m"')
        scaler = Scaler(tmp_path, source, KEDA, policy)
        assert scaler.run(3).returncode == 0
    first, second, third = scaler.decisions()
    assert (first["demand"], first["consumed"]) == (3.0, 2.0)
    moments = [datetime.datetime.fromisoformat(second[key]) for key in ("from", "until")]
    assert [round((at - moment).total_seconds()) for moment in moments] == [2, 1]
    # What was measured then is known.
    assert third["reason"] == "no-data"
    assert "nothing new" in third["why"]


def test_prometheus_answers_a_query(tmp_path):
    asked = []

    def answer(method, path, headers, body):
        asked.append(path)
        result = [{"metric": {}, "value": [1, "3"]}, {"metric": {}, "value": [1, "4"]}]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result if len(asked) < 2 else []}}

    with Page(answer) as prometheus:
        source = f'kind = "prometheus"\nurl = "{prometheus.url}"\ndemand = "sum(rate(x[1m]))"'
        scaler = Scaler(tmp_path, source, KEDA)
        assert scaler.run(2).returncode == 0
    first, second = scaler.decisions()
    assert asked[0] == "/api/v1/query?query=sum%28rate%28x%5B1m%5D%29%29"
    assert (first["demand"], first["units"]) == (7.0, 10)
    assert second["reason"] == "no-data"
    assert "no series" in second["why"]


# Edges.


@pytest.fixture
def edges(tmp_path):
    return edges_in(tmp_path / "edges")


def test_edges_are_started_and_drained_before_they_are_stopped(tmp_path, edges):
    (edges / "edge-0").touch()
    with Demand(2.0, 2.0, 0.5) as demand:
        scaler = Scaler(tmp_path, page(demand), by_exec(edges))
        done = scaler.run(14, "--apply")
    assert done.returncode == 0, done.stderr
    said = [line for line in (edges / "said").read_text().splitlines() if not line.startswith("list")]
    assert said[:2] == ["start ", "start "]
    assert sorted(said[2:]) == ["drain edge-1", "drain edge-2", "stop edge-1", "stop edge-2"]
    for edge in ("edge-1", "edge-2"):
        assert said.index(f"drain {edge}") < said.index(f"stop {edge}")
    assert [path.name for path in edges.glob("edge-*")] == ["edge-0"]
    notes = [note for line in scaler.decisions() for note in line.get("notes", [])]
    assert "edge-2 is drained" in notes
    assert "edge-2 is stopped" in notes


def test_an_edge_whose_drain_fails_is_never_stopped(tmp_path, edges):
    (edges / "stuck").touch()
    for number in range(3):
        (edges / f"edge-{number}").touch()
    with Demand(0.5) as demand:
        scaler = Scaler(tmp_path, page(demand), by_exec(edges))
        assert scaler.run(10, "--apply").returncode == 0
    said = (edges / "said").read_text()
    assert "drain edge-2" in said
    assert "stop" not in said
    assert len(list(edges.glob("edge-*"))) == 3
    notes = [note for line in scaler.decisions() for note in line.get("notes", [])]
    assert any(note.startswith("edge-2 was not taken away: ") for note in notes), notes


async def test_an_edge_is_stopped_although_the_scaler_ended_while_it_was_drained(tmp_path, edges):
    for number in range(2):
        (edges / f"edge-{number}").touch()
    os.mkfifo(edges / "gate")
    gate = os.open(edges / "gate", os.O_RDWR)
    with Demand(0.5) as demand:
        scaler = Scaler(tmp_path, page(demand), by_exec(edges))
        program = await scaler.start("--apply")
        try:
            await program.line("edge-1 is drained")
            program.process.kill()
        finally:
            (edges / "gate").unlink()
            os.close(gate)
            await program.close()

    def said():
        return [line for line in (edges / "said").read_text().splitlines() if not line.startswith("list")]

    with Demand(0.5) as demand:
        again = Scaler(tmp_path, page(demand), by_exec(edges))
        # Who may not act leaves it as it is, and does not forget it.
        assert again.run(2).returncode == 0
        assert said() == ["drain edge-1"]
        assert again.decisions()[-1]["leaving"] == ["edge-1"]
        assert again.run(5, "--apply").returncode == 0
    assert said() == ["drain edge-1", "drain edge-1", "stop edge-1"]
    notes = [note for line in again.decisions() for note in line.get("notes", [])]
    assert "edge-1 is drained again: the scaler before ended while it was drained" in notes
    assert notes[-1] == "edge-1 is stopped"
    assert "leaving" not in again.decisions()[-1]


def test_a_driver_that_says_nothing_is_told_nothing(tmp_path, edges):
    with Demand(50.0) as demand:
        scaler = Scaler(tmp_path, page(demand), by_exec(edges).replace('"list"]', '"drain"]', 1))
        assert scaler.run(2, "--apply").returncode == 0
    assert {(line["action"], line["reason"]) for line in scaler.decisions()} == {("hold", "driver-away")}
    assert "printed no list of edges" in scaler.decisions()[0]["why"]


# Kubernetes.


def by_kubernetes(tmp_path, api, token="t0ken"):
    (tmp_path / "token").write_text(token + "\n")
    return (
        f'kind = "kubernetes"\nresource = "statefulset"\nname = "edge"\nnamespace = "chat"\n'
        f'server = "{api.url}"\ntoken_file = "{tmp_path}/token"'
    )


def test_a_stateful_set_is_scaled_despite_conflicts(tmp_path):
    with Demand(7.0) as demand, Kubernetes(2) as api:
        api.conflicts = [None, None]
        scaler = Scaler(tmp_path, page(demand), by_kubernetes(tmp_path, api))
        assert scaler.run(2, "--apply").returncode == 0
        assert api.patches == [("application/merge-patch+json", 10)]
    assert [line["outcome"] for line in scaler.decisions()] == ["done", "nothing"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"refuse": 403}, "cannot patch: the role needs the verb `patch` on the subresource `scale`"),
        ({"refuse": 429}, "the API server asks to wait 7 s"),
        ({"conflicts": [5]}, "somebody else set 5 replicas meanwhile"),
        ({"conflicts": [None] * 9}, "3 conflicts in a row"),
    ],
)
def test_kubernetes_refuses(tmp_path, fault, why):
    with Demand(7.0) as demand, Kubernetes(2) as api:
        vars(api).update(fault)
        scaler = Scaler(tmp_path, page(demand), by_kubernetes(tmp_path, api))
        assert scaler.run(1, "--apply").returncode == 0
        assert api.patches == []
    (line,) = scaler.decisions()
    assert why in line["outcome"]["refused"]


def test_kubernetes_is_left_alone_for_as_long_as_it_asks(tmp_path):
    with Demand(7.0) as demand, Kubernetes(2) as api:
        api.refuse = 429
        scaler = Scaler(tmp_path, page(demand), by_kubernetes(tmp_path, api))
        assert scaler.run(3, "--apply").returncode == 0
        assert api.requests == 2
    first, second, third = scaler.decisions()
    assert "asks to wait 7 s" in first["outcome"]["refused"]
    for line in (second, third):
        assert line["reason"] == "driver-away"
        assert re.search(r"the API server asked to wait; [1-7] s of it are left", line["why"])


def test_kubernetes_does_not_know_the_scaler(tmp_path):
    with Demand(7.0) as demand, Kubernetes(2) as api:
        scaler = Scaler(tmp_path, page(demand), by_kubernetes(tmp_path, api, token="wrong"))
        assert scaler.run(1, "--apply").returncode == 0
    (line,) = scaler.decisions()
    assert (line["action"], line["reason"]) == ("hold", "driver-away")
    assert "needs the verb `get`" in line["why"]


@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_the_double_is_what_kubectl_takes_for_kubernetes(tmp_path):
    with Kubernetes(2) as api:
        command = ["kubectl", "--server", api.url, "-n", "chat", "scale", "statefulset/edge", "--replicas=4"]
        environment = os.environ | {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert api.replicas == 4


async def test_a_second_signal_ends_a_scaler_at_once(tmp_path):
    asked, answered = threading.Event(), threading.Event()

    def answer(*_):
        asked.set()
        answered.wait(60)
        return 200, {"load": {"demand": 1}}

    with Page(answer) as source:
        program = await Scaler(tmp_path, page(source), KEDA).start("--apply")
        try:
            assert await asyncio.to_thread(asked.wait, 20)
            # The first waits for the end of the decision, which waits for the page. Two of one kind may arrive as one.
            program.process.send_signal(signal.SIGINT)
            program.process.send_signal(signal.SIGTERM)
            assert await program.ended() == 143
        finally:
            answered.set()
            await program.close()


def test_decisions_are_explained_from_a_time_on(tmp_path):
    with Demand(7.0) as demand:
        scaler = Scaler(tmp_path, page(demand), KEDA)
        assert scaler.run(3).returncode == 0
    second = scaler.decisions()[1]["at"]
    at = datetime.datetime.fromisoformat(second)
    # The same moment, as another zone has it.
    elsewhere = at.astimezone(datetime.timezone(datetime.timedelta(hours=-5))).isoformat()
    for since in (second, elsewhere):
        told = run("autoscale", "explain", str(scaler.log), "--json", "--since", since)
        assert json.loads(told.stdout) == scaler.decisions()[1:], since
    refused = run("autoscale", "explain", str(scaler.log), "--since", "yesterday")
    assert refused.returncode == 2
    assert "expected a time such as 2026-12-24T18:00:00Z" in refused.stderr

"""The autoscaler against what it measures and commands: pages, edges, Kubernetes, AWS."""

import asyncio
import contextlib
import datetime
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from harness.autoscale import POLICY, Demand, Kubernetes, Page, Scaler, Table, page
from harness.inbox import deadline
from harness.ports import free_port
from harness.server import ROOT, run

KEDA = 'kind = "keda"\nlisten = "127.0.0.1:0"'
NEVER_DOWN = POLICY.replace('down = { after = "1s", below = 80 }', "down = { never = true }")


def acts(decisions):
    return [(line["action"], line["reason"], line["units"], line["outcome"]) for line in decisions]


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


# What the `metrics-api` scaler sends: a request of Go's client for a `url` with a path and a query, and with each `authMode`.
KEDAS_REQUEST = (
    "GET /units?cluster=a HTTP/1.1\r\nHost: autoscaler:8090\r\n"
    "User-Agent: Go-http-client/1.1\r\n{}Accept-Encoding: gzip\r\n\r\n"
)
KEDAS_HEADERS = ["", "X-Api-Key: k\r\n", "Authorization: Basic YTpi\r\n", "Authorization: Bearer t\r\n"]


async def asked(url, request):
    """What is answered to a request, to the end of the connection."""
    at = urllib.parse.urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    try:
        writer.write(request.encode())
        async with deadline("an answer"):
            return (await reader.read()).decode()
    finally:
        writer.close()


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
    assert second["consumed"] < 0.1
    assert second["measures"]["refused"] > 2000
    assert third["action"] == "hold"
    assert "its process was started anew" in third["why"]


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

EDGES = """#!/usr/bin/env bash
set -eu
cd "$(dirname "$0")"
echo "$1 ${EDGE_ID:-}" >>said
case $1 in
list)
    printf '['
    sep=
    for f in edge-*; do
        [ -e "$f" ] || continue
        state=running
        [ ! -e "draining.$f" ] || state=draining
        printf '%s{"id":"%s","state":"%s"}' "$sep" "$f" "$state"
        sep=,
    done
    printf ']'
    ;;
start) n=$(ls | grep -c ^edge- || true); touch "edge-$n" ;;
drain)
    touch "draining.${EDGE_ID:-}"
    # Whoever waits at the gate is there until the test closes it.
    [ ! -p gate ] || read -r _ <gate || true
    [ ! -e stuck ]
    ;;
stop) rm "$EDGE_ID" ;;
esac
"""


@pytest.fixture
def edges(tmp_path):
    folder = tmp_path / "edges"
    folder.mkdir()
    script = folder / "edges"
    script.write_text(EDGES)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def by_exec(edges):
    words = [f'{verb} = ["{edges}/edges", "{verb}"]' for verb in ("list", "start", "drain", "stop")]
    return 'kind = "exec"\n' + "\n".join(words)


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


# AWS.

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}


@pytest.fixture
def keys(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def by_dynamodb(url):
    return f'kind = "dynamodb"\ntable = "posts"\nendpoint = "{url}"'


def test_a_table_is_not_told_during_a_change_nor_beyond_its_decreases(tmp_path, keys):
    with Demand(14.0, 14.0, 1.0) as demand, Table(10, decreases=4, last_decrease=time.time()) as table:
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(table.url))
        assert scaler.run(2, "--apply").returncode == 0
        assert acts(scaler.decisions()) == [("up", "over-target", 20, "done"), ("hold", "changing", 20, "nothing")]
        table.status = "ACTIVE"
        assert scaler.run(16, "--apply").returncode == 0
        assert scaler.decisions()[-1]["reason"] == "decreases-used-up"
        assert table.updates == [20]
        # An hour without a decrease gives one more.
        table.last_decrease = time.time() - 3600
        assert scaler.run(1, "--apply").returncode == 0
        assert table.updates == [20, 2]


def test_a_table_that_refuses_is_said(tmp_path, keys):
    with Demand(14.0) as demand, Table(10) as table:
        table.refuse = "LimitExceededException"
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(table.url))
        assert scaler.run(1, "--apply").returncode == 0
    (line,) = scaler.decisions()
    assert line["outcome"]["refused"] == "dynamodb answers 400: LimitExceededException: Subscriber limit exceeded"


class Aws:
    """Somebody else's double of AWS, and what a test tells it without the scaler."""

    def __init__(self, *command):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        words = [str(word).replace("PORT", str(port)) for word in command]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.05)
                    raise AssertionError(self.process.stderr.read()) from None
        raise AssertionError(f"{command} does not listen")

    def call(self, target, service, **request):
        scope = f"20261125/eu-west-1/{service}/aws4_request"
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": target,
            "x-amz-date": "20261125T000000Z",
            "authorization": f"AWS4-HMAC-SHA256 Credential=k/{scope}, SignedHeaders=host, Signature=s",
        }
        sent = urllib.request.Request(self.url, json.dumps(request).encode(), headers)
        with urllib.request.urlopen(sent, timeout=10) as answer:
            return json.loads(answer.read() or b"{}")

    def create_table(self, units):
        self.call(
            "DynamoDB_20120810.CreateTable",
            "dynamodb",
            TableName="posts",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": units},
        )

    def table(self):
        return self.call("DynamoDB_20120810.DescribeTable", "dynamodb", TableName="posts")["Table"]

    def end(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def moto():
    program = ROOT / "target/interop/moto/bin/moto_server"
    aws = Aws(os.environ.get("MOTO_SERVER", program), "-p", "PORT")
    yield aws
    aws.end()


@pytest.fixture
def dynalite():
    script = ROOT / "tests/interop/node_modules/dynalite/cli.js"
    aws = Aws("node", script, "--port", "PORT", "--createTableMs", "1", "--updateTableMs", "300")
    yield aws
    aws.end()


def test_cloudwatch_says_what_was_consumed_and_throttled(tmp_path, keys, moto):
    moto.create_table(10)
    minute = int(time.time()) // 60 * 60
    for name, value in (("ConsumedWriteCapacityUnits", 600), ("WriteThrottleEvents", 240)):
        metric = {
            "MetricName": name,
            "Dimensions": [{"Name": "TableName", "Value": "posts"}],
            "Timestamp": minute - 90,
            "Value": value,
        }
        target = "GraniteServiceVersion20100801.PutMetricData"
        moto.call(target, "monitoring", Namespace="AWS/DynamoDB", MetricData=[metric])
    source = f'kind = "cloudwatch"\ntable = "posts"\nendpoint = "{moto.url}"'
    policy = POLICY.replace('interval = "200ms"', 'interval = "1s"\nstale_after = "5m"')
    scaler = Scaler(tmp_path, source, by_dynamodb(moto.url), policy)
    done = scaler.run(2, "--apply")
    assert done.returncode == 0, done.stderr
    first, second = scaler.decisions()
    assert (first["consumed"], first["demand"]) == (10.0, 14.0), first
    assert (first["action"], first["units"], first["outcome"]) == ("up", 20, "done")
    assert moto.table()["ProvisionedThroughput"]["WriteCapacityUnits"] == 20
    # The same minute again is nothing new.
    assert second["reason"] == "no-data"


def test_dynalite_takes_time_to_change(tmp_path, keys, dynalite):
    dynalite.create_table(10)
    with Demand(14.0) as demand:
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(dynalite.url))
        done = scaler.run(5, "--apply")
    assert done.returncode == 0, done.stderr
    lines = scaler.decisions()
    first = next(line for line in lines if line["action"] == "up")
    assert (first["units"], first["outcome"]) == (20, "done")
    assert "changing" in [line["reason"] for line in lines]
    assert (lines[-1]["reason"], lines[-1]["granted"]) == ("enough", 20)


def test_nobody_is_named_in_the_environment(tmp_path, monkeypatch):
    for name in (*KEYS, "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with Demand(1.0) as demand:
        done = Scaler(tmp_path, page(demand), by_dynamodb("http://127.0.0.1:1")).run(1)
    assert done.returncode == 2
    assert "region: there is none, here or in AWS_REGION" in done.stderr


def test_of_two_scalers_one_is_active(tmp_path, server):
    """The second goes on measuring, and takes over once the first has given up its lease."""
    key = server.data / "admin.key"
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{key}"\n'
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with Demand(7.0) as demand:
        scalers = [Scaler(folder, page(demand), KEDA, POLICY + lease) for folder in (first, second)]
        held = 'holder = "somebody"\n[source]'
        scalers[0].file.write_text(scalers[0].file.read_text().replace("[source]", held))
        path = "/v1/admin/leases/autoscale"
        taken = call(server, "POST", path, {"holder": "somebody", "ttl_ms": 60000})
        assert taken["holder"] == "somebody"
        assert scalers[1].run(1, "--apply").returncode == 0
        refused = scalers[1].decisions()[-1]["outcome"]["refused"]
        assert refused.startswith("another scaler is active: `somebody` holds it until ")
        # The one who holds it may act, and gives it up at its end.
        assert scalers[0].run(1, "--apply").returncode == 0
        assert scalers[0].decisions()[-1]["outcome"] == "done"
        assert scalers[1].run(1, "--apply").returncode == 0
        assert scalers[1].decisions()[-1]["outcome"] == "done"


async def test_a_scaler_that_is_told_to_end_gives_its_lease_up(tmp_path, server):
    key = server.data / "admin.key"
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{key}"\nname = "ended"\n'
    # It decides once, and waits for the next decision when it is told to end.
    policy = POLICY.replace('"200ms"', '"10m"').replace('"1s"', '"10m"')
    with Demand(7.0) as demand:
        settings = Scaler(tmp_path, page(demand), KEDA, policy + lease)
        scaler = await settings.start("--apply")
        decided = await scaler.line("units")
        with pytest.raises(urllib.error.HTTPError, match="409"):
            call(server, "POST", "/v1/admin/leases/ended", {"holder": "somebody", "ttl_ms": 60000})
        # What was decided is with the lease, for whoever looks at the node.
        state = call(server, "GET", "/v1/admin/leases/ended", None)["state"]
        assert state == settings.decisions()[-1]
        shown = run("autoscale", "status", "--url", server.http, "--key", key.read_text().strip())
        assert decided.strip() in shown.stdout, shown.stdout
        assert await scaler.interrupt() == 0
    taken = call(server, "POST", "/v1/admin/leases/ended", {"holder": "somebody", "ttl_ms": 60000})
    assert taken["holder"] == "somebody"


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


def call(server, method, path, body):
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    request = urllib.request.Request(server.http + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)

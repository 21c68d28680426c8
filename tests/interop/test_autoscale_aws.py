"""The autoscaler against AWS: doubles of others, and one of ours that refuses as AWS does."""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.request

import pytest

from harness.autoscale import POLICY, Demand, Page, Scaler, Table, acts, page
from harness.ports import free_port
from harness.server import ROOT

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


def somebody_else_changes(table):
    table.status = "UPDATING"


def somebody_else_takes_away(table):
    table.decreases, table.last_decrease = 4, time.time()


@pytest.mark.parametrize(
    ("units", "meanwhile", "rate", "why"),
    [
        (10, somebody_else_changes, None, "ResourceInUseException: Attempt to change a resource which is still in use"),
        (100, somebody_else_takes_away, None, "LimitExceededException: Subscriber limit exceeded"),
        (10, None, 1, "ThrottlingException: Rate exceeded"),
    ],
)
def test_a_table_that_refuses_is_said(tmp_path, keys, units, meanwhile, rate, why):
    """What AWS refuses although it would have taken it a moment before: the scaler says so, and decides anew."""
    with Demand(14.0) as demand, Table(units) as table:
        table.rate = rate
        table.meanwhile = lambda: meanwhile and meanwhile(table)
        # It looks back on nothing, so that it takes away at once.
        policy = POLICY.replace('after = "1s"', 'after = "200ms"')
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(table.url), policy)
        assert scaler.run(3, "--apply").returncode == 0
        assert table.updates == []
    refused = [line["outcome"]["refused"] for line in scaler.decisions() if isinstance(line["outcome"], dict)]
    assert refused[0].startswith(f"dynamodb answers 400: {why}"), scaler.decisions()


def test_a_table_that_throttles_its_reading_is_left_alone(tmp_path, keys):
    with Demand(14.0) as demand, Table(10) as table:
        table.rate = 0
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(table.url))
        assert scaler.run(2, "--apply").returncode == 0
        assert table.updates == []
    assert {line["reason"] for line in scaler.decisions()} == {"driver-away"}
    assert "ThrottlingException: Rate exceeded" in scaler.decisions()[0]["why"]


# Eight minutes up to nine times as much, and down again; a minute passes with each decision.
WAVE = [10] * 4 + [10 * n for n in range(2, 10)] + [90] * 4 + [5] * 12
CLOSED = """
[policy]
name = "{}"
target = 70
min = 5
max = 1000
interval = "200ms"
effect = "1m"
stale_after = "10m"
down = {{ after = "2s", below = 80 }}
"""


@pytest.mark.parametrize(("policy", "least", "most"), [("demand", 0.0, 0.005), ("consumed-5", 0.2, 1.0)])
def test_what_is_granted_comes_back_as_what_is_consumed(tmp_path, keys, policy, least, most):
    """The loop is closed: what the scaler grants is what the table can do, and only that is consumed; the rest is throttled."""
    with Table(15, demand=WAVE) as table:
        source = f'kind = "cloudwatch"\ntable = "posts"\nendpoint = "{table.url}"'
        scaler = Scaler(tmp_path, source, by_dynamodb(table.url), CLOSED.format(policy))
        done = scaler.run(len(WAVE), "--apply")
        assert done.returncode == 0, done.stderr
        lines = scaler.decisions()
        assert least <= table.lost() <= most, (table.lost(), table.updates)
        # Nothing that it did was refused, and what was not needed any more was taken away.
        assert all(isinstance(line["outcome"], str) for line in lines), acts(lines)
        assert table.updates[-1] < max(table.updates), table.updates
        assert 1 <= table.decreases <= 4
    assert lines[-1]["demand"] == 5.0


TARGET = {
    "ServiceNamespace": "dynamodb",
    "ResourceId": "table/posts",
    "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
}


def test_a_table_that_aws_scales_is_left_to_it(tmp_path, keys, moto):
    def autoscaling(operation, **request):
        moto.call(f"AnyScaleFrontendService.{operation}", "application-autoscaling", **TARGET, **request)

    moto.create_table(10)
    with Demand(14.0) as demand:
        scaler = Scaler(tmp_path, page(demand), by_dynamodb(moto.url))
        autoscaling("RegisterScalableTarget", MinCapacity=1, MaxCapacity=40)
        assert scaler.run(1, "--apply").returncode == 0
        refused = scaler.decisions()[-1]["outcome"]["refused"]
        assert refused.startswith(
            "AWS scales the table posts itself, from 1 to 40 units; `aws application-autoscaling "
        )
        assert moto.table()["ProvisionedThroughput"]["WriteCapacityUnits"] == 10
        # One that does nothing, or is not there any more, is none.
        parts = ("DynamicScalingIn", "DynamicScalingOut", "ScheduledScaling")
        suspended = {f"{part}Suspended": True for part in parts}
        autoscaling("RegisterScalableTarget", SuspendedState=suspended)
        assert scaler.run(1, "--apply").returncode == 0
        assert scaler.decisions()[-1]["outcome"] == "done"
        assert moto.table()["ProvisionedThroughput"]["WriteCapacityUnits"] == 20
    autoscaling("DeregisterScalableTarget")
    with Demand(28.0) as demand:
        again = Scaler(tmp_path, page(demand), by_dynamodb(moto.url))
        assert again.run(1, "--apply").returncode == 0
    assert moto.table()["ProvisionedThroughput"]["WriteCapacityUnits"] >= 40


def test_a_scaler_that_may_not_ask_who_scales_a_table_changes_nothing(tmp_path, keys):
    with (
        Demand(14.0) as demand,
        Table(10) as table,
        Page(lambda *_: (400, {"__type": "AccessDeniedException"})) as other,
    ):
        driver = by_dynamodb(table.url) + f'\nautoscaling_endpoint = "{other.url}"'
        scaler = Scaler(tmp_path, page(demand), driver)
        assert scaler.run(1, "--apply").returncode == 0
        assert table.updates == []
    (line,) = scaler.decisions()
    assert line["outcome"]["refused"].startswith(
        "whether AWS scales the table itself is not known: application-autoscaling"
    )


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


def put_minute(moto, began, consumed, throttled):
    for name, value in (("ConsumedWriteCapacityUnits", consumed), ("WriteThrottleEvents", throttled)):
        metric = {
            "MetricName": name,
            "Dimensions": [{"Name": "TableName", "Value": "posts"}],
            "Timestamp": began + 30,
            "Value": value,
        }
        target = "GraniteServiceVersion20100801.PutMetricData"
        moto.call(target, "monitoring", Namespace="AWS/DynamoDB", MetricData=[metric])


def test_minutes_that_come_late_are_all_told(tmp_path, keys, moto):
    """CloudWatch is some minutes late, and then has several at once: none is skipped, so that breaches stay consecutive and there is no gap."""
    moto.create_table(10)
    # Not at the end of a minute: it would pass between two decisions.
    minute = int(time.time() + 10) // 60 * 60
    source = f'kind = "cloudwatch"\ntable = "posts"\nendpoint = "{moto.url}"'
    policy = POLICY.replace('interval = "200ms"', 'name = "consumed-5"\ninterval = "1m"\nstale_after = "15m"')
    policy = policy.replace('after = "1s"', 'after = "5m"')
    scaler = Scaler(tmp_path, source, by_dynamodb(moto.url), policy)

    def decision(*minutes):
        for began, consumed in minutes:
            put_minute(moto, minute + began, consumed, 0)
        done = scaler.run(1, "--apply")
        assert done.returncode == 0, done.stderr
        return scaler.decisions()[-1]

    # Ten units of which nine are used: a breach of 70 %.
    first = decision((-480, 540))
    assert (first["reason"], first["consumed"]) == ("enough", 9.0)
    # A scaler that starts knows the first from its log. It is not told again.
    second = decision((-420, 540), (-360, 546))
    assert [line["consumed"] for line in second["earlier"]] == [9.0]
    assert second["earlier"][0]["from"] == first["until"]
    assert second["earlier"][0]["until"] == second["from"]
    third = decision((-300, 552), (-240, 558))
    # The fifth in a row.
    assert (third["action"], third["reason"], third["outcome"]) == ("up", "over-target", "done"), third


def test_cloudwatch_says_what_was_consumed_and_throttled(tmp_path, keys, moto):
    moto.create_table(10)
    put_minute(moto, int(time.time()) // 60 * 60 - 120, 600, 240)
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

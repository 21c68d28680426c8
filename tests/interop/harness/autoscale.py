"""What the autoscaler speaks to in its tests, where the real thing is not to be had: doubles that refuse as the real ones do."""

import asyncio
import http.server
import json
import re
import stat
import threading
import time
import urllib.parse
import urllib.request

from .inbox import deadline
from .program import Program
from .server import run


class Page(http.server.ThreadingHTTPServer):
    """An HTTP server that asks `answer(method, path, headers, body)` for a status, a body and further headers."""

    daemon_threads = True

    def __init__(self, answer):
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        status, body, *more = self.server.answer(self.command, self.path, self.headers, body)
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(more[0] if more else {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, *_):
        pass


class Demand(Page):
    """A page that says how much is asked for: each time the next of these, the last one from then on."""

    def __init__(self, *demands):
        self.demands = list(demands)
        super().__init__(self._demand)

    def _demand(self, *_):
        demand = self.demands.pop(0) if len(self.demands) > 1 else self.demands[0]
        if demand is None:
            return 503, {}
        return 200, {"load": {"demand": demand}}


class Kubernetes(Page):
    """The subresource `scale` of a StatefulSet in the API of Kubernetes: versions, conflicts, refusals."""

    PATH = "/apis/apps/v1/namespaces/chat/statefulsets/edge"

    def __init__(self, replicas, token="t0ken"):
        self.replicas, self.version, self.token = replicas, 100, token
        # The next patches find that somebody else changed the workload; with a number it has other replicas now.
        self.conflicts = []
        # The next patch is refused with this status.
        self.refuse = None
        self.patches, self.requests = [], 0
        super().__init__(self._kubernetes)

    def scale(self):
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": "edge", "namespace": "chat", "uid": "1", "resourceVersion": str(self.version)},
            "spec": {"replicas": self.replicas} if self.replicas else {},
            "status": {"replicas": self.replicas, "selector": "app=edge"},
        }

    def _status(self, code, reason, message, headers=None):
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        return code, status | {"message": message, "reason": reason, "code": code}, headers or {}

    def _kubernetes(self, method, path, headers, body):
        self.requests += 1
        path = path.split("?")[0]
        if discovered := _DISCOVERY.get(path):
            return 200, discovered
        if headers.get("authorization") not in (None, f"Bearer {self.token}"):
            return self._status(401, "Unauthorized", "Unauthorized")
        if path == self.PATH and method == "GET":
            metadata = {"name": "edge", "namespace": "chat", "resourceVersion": str(self.version)}
            return 200, {"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": metadata, "spec": {}}
        if path != f"{self.PATH}/scale":
            return self._status(404, "NotFound", f'statefulsets.apps "{path}" not found')
        if method == "GET":
            return 200, self.scale()
        return self._change(headers, json.loads(body))

    def _change(self, headers, change):
        if self.refuse == 403:
            return self._status(403, "Forbidden", 'statefulsets.apps "edge" is forbidden: User "scaler" cannot patch')
        if self.refuse == 429:
            return self._status(429, "TooManyRequests", "too many requests", {"retry-after": "7"})
        if self.conflicts:
            self.version += 1
            other = self.conflicts.pop(0)
            self.replicas = self.replicas if other is None else other
        version = change.get("metadata", {}).get("resourceVersion")
        if version not in (None, str(self.version)):
            return self._status(409, "Conflict", "the object has been modified")
        self.patches.append((headers["content-type"], change["spec"]["replicas"]))
        self.replicas, self.version = change["spec"]["replicas"], self.version + 1
        return 200, self.scale()


_VERBS = ["get", "list", "patch", "update"]
_DISCOVERY = {
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }
        ],
    },
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
        "resources": [
            {
                "name": "statefulsets",
                "singularName": "statefulset",
                "namespaced": True,
                "kind": "StatefulSet",
                "verbs": _VERBS,
            },
            {
                "name": "statefulsets/scale",
                "singularName": "",
                "namespaced": True,
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": _VERBS,
            },
        ],
    },
}


class Table(Page):
    """A table of DynamoDB, with what CloudWatch and Application Auto Scaling say of it, that refuses what AWS refuses and dynalite and moto do not:
    a change during a change, a change to what there is, more decreases than a day has, more requests than `rate` within a second.

    With `demand`, what is asked for in each minute, a minute passes whenever CloudWatch is asked. What is asked for is done from the units in force and
    from what was saved of them, up to 300 seconds' worth; the rest is throttled. A change is in force after the next minute.
    """

    DECREASES, PAUSE_S, SAVED_S = 4, 3600, 300

    def __init__(self, units, decreases=0, last_decrease=0, demand=()):
        self.units, self.decreases, self.last_decrease = units, decreases, last_decrease
        self.status, self.updates, self.rate, self.requests = "ACTIVE", [], None, []
        # Scalable targets of Application Auto Scaling, and what somebody else does between the two requests of a change.
        self.targets, self.meanwhile = [], lambda: None
        self.demand, self.in_force, self.saved, self.minutes = list(demand), units, units * self.SAVED_S, []
        self.began = int(time.time()) // 60 * 60 - 120
        super().__init__(self._aws)

    def _throughput(self):
        return {
            "ReadCapacityUnits": 5,
            "WriteCapacityUnits": self.units,
            "NumberOfDecreasesToday": self.decreases,
            "LastDecreaseDateTime": self.last_decrease,
        }

    def _refusal(self, kind, message):
        return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{kind}", "message": message}

    def _aws(self, method, path, headers, body):
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        answers = {
            "DescribeTable": self._describe,
            "UpdateTable": self._update,
            "DescribeScalableTargets": self._scalable_targets,
            "GetMetricData": self._metrics,
        }
        return answers[headers["x-amz-target"].split(".")[1]](json.loads(body))

    def _is_throttled(self):
        now = time.monotonic()
        self.requests = [at for at in self.requests if now - at < 1] + [now]
        return self.rate is not None and len(self.requests) > self.rate

    def _describe(self, request):
        if self._is_throttled():
            return self._refusal("ThrottlingException", "Rate exceeded")
        table = {"TableName": request["TableName"], "TableStatus": self.status}
        return 200, {"Table": table | {"ProvisionedThroughput": self._throughput()}}

    def _scalable_targets(self, request):
        assert request["ServiceNamespace"] == "dynamodb"
        assert request["ResourceIds"] == ["table/posts"]
        assert request["ScalableDimension"] == "dynamodb:table:WriteCapacityUnits"
        self.meanwhile()
        return 200, {"ScalableTargets": self.targets}

    def _update(self, request):
        wanted = request["ProvisionedThroughput"]
        assert wanted["ReadCapacityUnits"] == 5, "what is not scaled stays as it is"
        units, now = wanted["WriteCapacityUnits"], time.time()
        if self._is_throttled():
            return self._refusal("ThrottlingException", "Rate exceeded")
        if self.status != "ACTIVE":
            return self._refusal("ResourceInUseException", "Attempt to change a resource which is still in use")
        if units == self.units:
            return self._refusal("ValidationException", "The provisioned throughput for the table will not change")
        if units < self.units:
            if self.decreases >= self.DECREASES and now - self.last_decrease < self.PAUSE_S:
                return self._refusal(
                    "LimitExceededException", "Subscriber limit exceeded: Provisioned throughput decreases"
                )
            self.decreases, self.last_decrease = self.decreases + 1, now
        self.updates.append(units)
        self.units, self.status = units, "UPDATING"
        return 200, {"TableDescription": {"TableName": request["TableName"], "TableStatus": self.status}}

    def _metrics(self, request):
        self._pass()
        newest = self.minutes[-10:][::-1]
        results = []
        for query in request["MetricDataQueries"]:
            name = query["MetricStat"]["Metric"]["MetricName"]
            told = [(at, values[name]) for at, values in newest if values[name]]
            results.append({"Id": query["Id"], "Timestamps": [at for at, _ in told], "Values": [v for _, v in told]})
        return 200, {"MetricDataResults": results}

    def lost(self):
        """Of all that was asked for, the share that was throttled."""
        total = {
            name: sum(values[name] for _, values in self.minutes)
            for name in ("ConsumedWriteCapacityUnits", "WriteThrottleEvents")
        }
        return total["WriteThrottleEvents"] / sum(total.values())

    def _pass(self):
        """A minute passes."""
        asked = 60 * (self.demand.pop(0) if len(self.demand) > 1 else self.demand[0])
        done = min(asked, self.in_force * 60 + self.saved)
        self.saved = min(self.in_force * self.SAVED_S, self.saved + self.in_force * 60 - done)
        values = {"ConsumedWriteCapacityUnits": done, "WriteThrottleEvents": asked - done}
        self.minutes.append((self.began + 60 * len(self.minutes), values))
        self.in_force, self.status = self.units, "ACTIVE"


POLICY = """
[policy]
target = 70
min = 1
max = 100
interval = "200ms"
effect = "200ms"
down = { after = "1s", below = 80 }
"""


class Scaler:
    """`carillon autoscale` with a settings file in a folder."""

    def __init__(self, folder, source, driver, policy=POLICY):
        self.folder, self.file, self.log = folder, folder / "autoscale.toml", folder / "decisions.ndjson"
        self.file.write_text(f'log = "{self.log}"\n{policy}\n[source]\n{source}\n[driver]\n{driver}\n')

    def run(self, decisions, *arguments):
        """Runs so many decisions, to the end."""
        return run("autoscale", "run", "--config", str(self.file), "--decisions", str(decisions), *arguments)

    async def start(self, *arguments):
        """Runs until it is ended."""
        return await Program.open("autoscale", "run", "--config", str(self.file), *arguments)

    def decisions(self):
        """The lines of the decision log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def page(source, key="/load/demand"):
    """The settings of a JSON page as the source."""
    return f'kind = "http"\nurl = "{source.url}"\ndemand = "{key}"'


KEDA = 'kind = "keda"\nlisten = "127.0.0.1:0"'
NEVER_DOWN = POLICY.replace('down = { after = "1s", below = 80 }', "down = { never = true }")


def acts(decisions):
    return [(line["action"], line["reason"], line["units"], line["outcome"]) for line in decisions]


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


async def said_to_keda(settings, *arguments):
    """Status and units of the page after the first decision."""
    program = await settings.start(*arguments)
    try:
        # The line is that of the first decision.
        url = re.search(r"serves (http://\S+/)", await program.line("serves"))[1]
        head, body = (await asked(url, KEDAS_REQUEST.format(""))).split("\r\n\r\n")
        return int(head.split()[1]), json.loads(body).get("units")
    finally:
        program.process.terminate()
        await program.process.wait()


def call(server, method, path, body):
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    request = urllib.request.Request(server.http + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


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
start)
    [ ! -p start-gate ] || read -r _ <start-gate || true
    n=$(ls | grep -c ^edge- || true); touch "edge-$n"
    ;;
drain)
    touch "draining.${EDGE_ID:-}"
    # Whoever waits at the gate is there until the test closes it.
    [ ! -p gate ] || read -r _ <gate || true
    [ ! -e stuck ]
    ;;
stop) rm "$EDGE_ID" ;;
esac
"""


def edges_in(folder):
    """A folder with edges that are files, and the script that lists, starts, drains and stops them."""
    folder.mkdir()
    script = folder / "edges"
    script.write_text(EDGES)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def by_exec(edges):
    words = [f'{verb} = ["{edges}/edges", "{verb}"]' for verb in ("list", "start", "drain", "stop")]
    return 'kind = "exec"\n' + "\n".join(words)

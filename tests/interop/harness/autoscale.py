"""What the autoscaler speaks to in its tests, where the real thing is not to be had: doubles that refuse as the real ones do."""

import http.server
import json
import threading

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
        self.patches = []
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
    """A table of DynamoDB with the limits that dynalite and moto do not enforce: few decreases, no change during a change."""

    def __init__(self, units, decreases=0, last_decrease=0):
        self.units, self.decreases, self.last_decrease = units, decreases, last_decrease
        self.status, self.refuse, self.updates = "ACTIVE", None, []
        super().__init__(self._dynamodb)

    def _throughput(self):
        return {
            "ReadCapacityUnits": 5,
            "WriteCapacityUnits": self.units,
            "NumberOfDecreasesToday": self.decreases,
            "LastDecreaseDateTime": self.last_decrease,
        }

    def _dynamodb(self, method, path, headers, body):
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        operation, request = headers["x-amz-target"].split(".")[1], json.loads(body)
        table = {
            "TableName": request["TableName"],
            "TableStatus": self.status,
            "ProvisionedThroughput": self._throughput(),
        }
        if operation == "DescribeTable":
            return 200, {"Table": table}
        kind = "com.amazonaws.dynamodb.v20120810#"
        if self.refuse:
            return 400, {"__type": kind + self.refuse, "message": "Subscriber limit exceeded"}
        wanted = request["ProvisionedThroughput"]
        assert wanted["ReadCapacityUnits"] == 5, "what is not scaled stays as it is"
        self.updates.append(wanted["WriteCapacityUnits"])
        self.units, self.status = wanted["WriteCapacityUnits"], "UPDATING"
        return 200, {"TableDescription": table}


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

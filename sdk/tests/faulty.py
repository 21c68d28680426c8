"""A proxy before a node that fails as it is told: how the clients are shown answers that are lost, late or refused.

A client is given the URL `http://HOST:PORT/FAULTS~NAME`. The first request under it meets the first of the faults, which have commas
between them, the next request the second one, and requests behind the last fault meet none:

- `ok`: the request is forwarded, and its answer comes back;
- `busy` or `busy:SECONDS`: 503 with `Retry-After`, and the node is not asked;
- `unavailable`: 503 without `Retry-After`;
- `cut`: the request is forwarded, and the connection ends without an answer;
- `half`: the connection ends after the first half of the answer's body;
- `event`: the connection ends after the first event of a stream that carries data;
- `hang`: the request is forwarded, and no answer comes until the client gives up.

`GET /FAULTS~NAME/seen` tells of the requests that came.
"""

import http.client
import http.server
import json
import select
import threading
import time

HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}
FORWARD_S = 60


class Faulty:
    """A running proxy."""

    def __init__(self, port):
        self.target = port
        self.seen = {}
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"faulty": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def next_fault(self, script, request):
        """Which fault a request meets; it is noted."""
        with self.lock:
            seen = self.seen.setdefault(script, [])
            seen.append(request)
            faults = script.partition("~")[0].split(",")
            return faults[len(seen) - 1] if len(seen) <= len(faults) else "ok"


class Handler(http.server.BaseHTTPRequestHandler):
    """A connection of a client."""

    protocol_version = "HTTP/1.1"
    faulty: Faulty

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, BrokenPipeError):
            # The client gave up: that is what some tests want of it.
            self.close_connection = True

    def answer(self):
        _, script, rest = self.path.split("/", 2)
        if rest == "seen":
            return self.say(200, self.faulty.seen.get(script, []))
        body = self.body()
        request = {
            "method": self.command,
            "path": "/" + rest,
            "idempotency_key": self.headers.get("idempotency-key"),
            "last_event_id": self.headers.get("last-event-id"),
            "at": time.monotonic(),
        }
        fault, _, value = self.faulty.next_fault(script, request).partition(":")
        if fault in ("busy", "unavailable"):
            problem = {
                "type": "urn:carillon:problem:unavailable",
                "code": "unavailable",
                "title": "The node cannot do it now",
                "status": 503,
                "detail": "it is busy",
            }
            return self.say(503, problem, {"retry-after": value or "1"} if fault == "busy" else {})
        return self.forward("/" + rest, body, fault)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def say(self, status, body, headers=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(text), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    def forward(self, path, body, fault):
        node = http.client.HTTPConnection("127.0.0.1", self.faulty.target, timeout=FORWARD_S)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            node.request(self.command, path, body or None, headers)
            answer = node.getresponse()
            if fault in ("cut", "hang"):
                if not is_stream(answer):
                    answer.read()
                self.close_connection = True
                if fault == "hang":
                    # Readable: the client has closed its end.
                    select.select([self.connection], [], [], FORWARD_S)
                return
            self.pass_on(answer, fault)
        finally:
            node.close()

    def pass_on(self, answer, fault):
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        if is_stream(answer):
            return self.stream(answer, fault)
        body = answer.read()
        if answer.status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if fault == "half":
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def stream(self, answer, fault):
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        has_data = False
        while line := answer.readline():
            self.wfile.write(line)
            has_data |= line.startswith(b"data:")
            if fault == "event" and has_data and line == b"\n":
                return


def is_stream(answer):
    return answer.headers.get("content-type", "").startswith("text/event-stream")

"""Requests that a real node makes to a webhook, and ones that somebody else made up."""

import http.server
import json
import queue
import threading
import time
import urllib.request

import pytest
from carillon_sender import BadSignature, Client, verify_webhook


@pytest.fixture(scope="module")
def receiver():
    """What comes to a webhook: headers and body."""
    came = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            came.put((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    came.url = f"http://127.0.0.1:{server.server_address[1]}/receipts"
    yield came
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def webhook(environment, receiver):
    """A webhook of the node, and its secret."""

    def ask(method, path, body=None):
        headers = {"authorization": f"Bearer {environment['CARILLON_ADMIN_KEY']}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(
            urllib.request.Request(environment["CARILLON_URL"] + path, data, headers, method=method)
        ) as answer:
            return json.loads(answer.read() or "null")

    made = ask("POST", "/v1/webhooks", {"url": receiver.url, "states": ["cancelled"]})
    yield made["secret"]
    ask("DELETE", f"/v1/webhooks/{made['id']}")


@pytest.fixture(scope="module")
def request_of_the_node(environment, receiver, webhook):
    with Client(environment["CARILLON_URL"], environment["CARILLON_KEY"]) as client:
        sent = client.send(client.enrol()["id"], payload={"n": 1})
        client.cancel(sent["id"])
    headers, body = receiver.get(timeout=20)
    return sent, headers, body


def test_what_the_node_signed_is_taken(webhook, request_of_the_node):
    sent, headers, body = request_of_the_node
    said = verify_webhook(webhook, headers, body)
    assert said["type"] == "notifications.ended"
    assert said["events"][0]["notification"]["id"] == sent["id"]
    # The new secret and the old one, while one takes the place of the other.
    assert verify_webhook(["whsec_AAAA", webhook], headers, body) == said


def test_what_somebody_else_sent_is_not(webhook, request_of_the_node):
    _, headers, body = request_of_the_node
    lower = {name.lower(): value for name, value in headers.items()}
    bad = [
        ("whsec_AAAA", lower, body),
        ([], lower, body),
        (webhook, lower, body + b" "),
        (webhook, {**lower, "webhook-id": "another"}, body),
        (webhook, {**lower, "webhook-timestamp": str(int(lower["webhook-timestamp"]) + 1)}, body),
        (webhook, {**lower, "webhook-signature": "v1,é v1, v2," + lower["webhook-signature"][3:]}, body),
        (webhook, {}, body),
        (webhook, {**lower, "webhook-timestamp": "soon"}, body),
    ]
    for secrets, headers, body in bad:
        with pytest.raises(BadSignature):
            verify_webhook(secrets, headers, body)


def test_what_is_old_or_ahead_is_not(webhook, request_of_the_node):
    _, headers, body = request_of_the_node
    for seconds in (-400, 400):
        with pytest.raises(BadSignature, match="seconds"):
            verify_webhook(webhook, headers, body, now=time.time() + seconds)
    assert verify_webhook(webhook, headers, body, now=time.time() + 400, tolerance_s=600)


def test_a_secret_that_is_none(request_of_the_node):
    _, headers, body = request_of_the_node
    for none in ("no secret", "", "whsec_"):
        with pytest.raises(ValueError, match="whsec_"):
            verify_webhook(none, headers, body)

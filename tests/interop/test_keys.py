"""API keys: what each scope opens, and that nothing else does."""

import pytest

from harness.api import Api

# Scope, and a request that needs it. What it is about need not exist: the scope is looked at first.
NEEDS = [
    ("send", "POST", "/v1/notifications", {"to": "nobody", "payload": 1}),
    ("send", "GET", "/v1/notifications/01KAG8X4RZ5T9V7Q2M3N6P8W0Y", None),
    ("send", "GET", "/v1/events?state=what", None),
    ("topics", "GET", "/v1/topics", None),
    ("topics", "PUT", "/v1/topics/by-scope", {}),
    ("topics", "POST", "/v1/topics/nothing/items", {"payload": 1}),
    ("enrol", "GET", "/v1/devices", None),
    ("enrol", "POST", "/v1/devices", {}),
    ("enrol", "PUT", "/v1/devices/nobody/subscriptions/nothing", None),
    ("admin", "GET", "/v1/admin/accounts", None),
    ("admin", "GET", "/v1/admin/domains", None),
    ("admin", "GET", "/v1/admin/keys", None),
    ("admin", "GET", "/v1/admin/sessions", None),
    ("admin", "GET", "/v1/admin/status", None),
    ("admin", "GET", "/v1/admin/history", None),
]


@pytest.mark.parametrize("scope", ["send", "topics", "enrol", "admin"])
async def test_a_scope_opens_what_it_says_and_admin_everything(keys, scope):
    key = await keys(scope)
    for needed, method, path, body in NEEDS:
        if scope in (needed, "admin"):
            answer = await key.call(method, path, body)
            assert answer.status_code not in (401, 403), f"{method} {path}: {answer.text}"
        else:
            problem = await key.problem(403, "missing-scope", method, path, body)
            assert f"`{needed}`" in problem["detail"]


async def test_without_a_key_and_with_a_wrong_one(server):
    for text, code in [("", "missing-key"), ("crl_" + "A" * 43, "unknown-key"), ("nonsense", "unknown-key")]:
        api = Api(server, text)
        for _, method, path, body in NEEDS:
            answer = await api.call(method, path, body)
            assert (answer.status_code, answer.json()["code"]) == (401, code), f"{method} {path}: {answer.text}"
            assert answer.headers["www-authenticate"].startswith("Bearer ")
        await api.aclose()


async def test_a_key_says_what_it_is(keys):
    key = await keys("send", "topics")
    own = await key.ok("GET", "/v1/key")
    assert own["scopes"] == ["send", "topics"]
    assert own["default_domain"] == "localhost"
    assert "key" not in own


async def test_a_removed_key_is_no_key_and_its_streams_end(api, keys):
    key = await keys("send")
    async with key.events() as events:
        await api.ok("DELETE", f"/v1/admin/keys/{key.id}", status=204)
        await events.ended()
    await key.problem(401, "unknown-key", "GET", "/v1/key")
    await api.problem(404, "unknown-key-id", "DELETE", f"/v1/admin/keys/{key.id}")


async def test_a_key_is_used_from_its_networks_alone_and_says_when_it_was(api, server):
    async def made(*networks):
        body = {"name": "from a network", "scopes": ["send"], "networks": list(networks)}
        created = await api.ok("POST", "/v1/admin/keys", body, status=201)
        return created, Api(server, created["key"])

    (here, from_here), (_, from_elsewhere) = await made("127.0.0.1", "192.0.2.77/24"), await made("192.0.2.1")
    assert here["networks"] == ["127.0.0.1/32", "192.0.2.0/24"]
    assert here["used_at"] is None
    await from_here.ok("GET", "/v1/key")
    await from_elsewhere.problem(403, "other-network", "GET", "/v1/key")
    await api.eventually(f"/v1/admin/keys/{here['id']}", lambda seen: seen["used_at"] is not None)
    body = {"name": "wrong", "scopes": ["send"], "networks": ["example.org"]}
    await api.problem(422, "invalid-value", "POST", "/v1/admin/keys", body)
    for key in (from_here, from_elsewhere):
        await key.aclose()


async def test_a_rotated_key_goes_on_for_a_while(api, server, keys):
    old = await keys("send", "topics")
    made = await api.ok("POST", f"/v1/admin/keys/{old.id}/rotate", {"overlap_ms": 3_600_000}, status=201)
    new = Api(server, made["key"])
    seen = await api.ok("GET", f"/v1/admin/keys/{old.id}")
    assert (made["name"], made["scopes"], made["expires_at"]) == (seen["name"], seen["scopes"], None)
    assert seen["expires_at"] is not None
    await old.ok("GET", "/v1/key")
    await new.ok("GET", "/v1/key")
    # Without an overlap the old one ends at once.
    again = await api.ok("POST", f"/v1/admin/keys/{made['id']}/rotate", {"overlap_ms": 0}, status=201)
    await new.problem(401, "expired-key", "GET", "/v1/key")
    await api.problem(400, "invalid-parameter", "POST", f"/v1/admin/keys/{made['id']}/rotate", {})
    newest = Api(server, again["key"])
    await newest.ok("GET", "/v1/key")
    for key in (new, newest):
        await key.aclose()


async def test_what_needs_no_key(server):
    api = Api(server, "")
    for path, kind in [
        ("/healthz", "text/plain"),
        ("/readyz", "text/plain"),
        ("/openapi.json", "application/json"),
        ("/console", "text/html"),
        ("/docs", "text/html"),
        ("/metrics", "text/plain"),
        ("/.well-known/host-meta", "application/xrd+xml"),
        ("/.well-known/host-meta.json", "application/json"),
    ]:
        answer = await api.call("GET", path)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"].startswith(kind), path
    links = (await api.ok("GET", "/.well-known/host-meta.json"))["links"]
    assert links == [
        {"rel": "urn:xmpp:alt-connections:websocket", "href": server.websocket.replace("127.0.0.1", "localhost")}
    ]
    await api.aclose()


async def test_every_route_of_the_document_answers(api):
    """No route is described that is not there: unknown-route would say so."""
    document = await api.ok("GET", "/openapi.json")
    assert document["openapi"].startswith("3.")
    for path, methods in document["paths"].items():
        filled = (
            path.replace("{id}", "0").replace("{topic}", "none").replace("{jid}", "none").replace("{domain}", "none")
        )
        for method in methods:
            if method in ("get", "post", "put", "delete") and path != "/v1/events":
                answer = await api.call(method.upper(), filled)
                code = answer.json().get("code") if "problem" in answer.headers.get("content-type", "") else None
                assert code not in ("unknown-route", "wrong-method"), f"{method} {path}: {answer.text}"
                assert answer.status_code < 500, f"{method} {path}: {answer.text}"

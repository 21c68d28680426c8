"""Short links of a real node: the commands of the book, as they stand in the page, and what its hosts answer."""

import json
import re
import shlex

import httpx
import pytest

from harness.api import Api
from harness.peer import Peer
from harness.server import ROOT, Server
from harness.transcript import blocks

PAGE = ROOT / "docs/book/links.md"
HOST = "go.example.com"
APPLE = {"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"]}]}}
ANDROID = [
    {
        "relation": ["delegate_permission/common.handle_all_urls"],
        "target": {
            "namespace": "android_app",
            "package_name": "com.example.app",
            "sha256_cert_fingerprints": [":".join(["AB"] * 32)],
        },
    }
]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("links"), domain="example.com", links__hosts=f"{HOST}=example.com")
    yield server
    server.end()


@pytest.fixture
async def visit(node):
    """Asks the node for a path of the host of links."""
    async with httpx.AsyncClient(base_url=node.http, headers={"host": HOST}, trust_env=False) as client:

        async def visit(path):
            answer = await client.get(path)
            return answer.status_code, answer.headers.get("location"), answer.text

        yield visit


@pytest.fixture
async def operator(node):
    api = Api(node)
    yield api
    await api.aclose()


async def test_the_commands_of_the_book(node, operator, visit, tmp_path):
    (tmp_path / "apple.json").write_text(json.dumps(APPLE))
    (tmp_path / "android.json").write_text(json.dumps(ANDROID))
    await operator.account("alice@example.com")
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    assert len(lines) > 15
    printed = {}
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "carillon"
        for file in ("apple.json", "android.json"):
            arguments = [re.sub(rf"^([a-z.-]+=)?{file}$", rf"\g<1>{tmp_path / file}", word) for word in arguments]
        if arguments[0] == "config":
            # What is under test is the files: whoever has the usual ports on this machine does not matter.
            arguments += [f"--set={listener}.port=0" for listener in ("c2s", "c2s_tls", "websocket", "http")]
        done = await node.command(*arguments)
        assert done.returncode == 0, f"{line}: {done}"
        printed[line] = done.stdout
        if "set-file apple" in line:
            status, _, text = await visit("/.well-known/apple-app-site-association")
            assert (status, json.loads(text)) == (200, APPLE)
    short = printed["carillon link create https://example.com/offers?id=7"].strip()
    assert short.startswith(f"https://{HOST}/")
    path = short.removeprefix(f"https://{HOST}")
    assert (await visit(path))[:2] == (308, "https://example.com/offers?id=7")
    assert (await visit("/menu"))[:2] == (307, "https://example.com/menu/2")
    assert (await visit("/.well-known/assetlinks.json"))[0] == 404


async def test_who_follows_the_link_has_opened_the_notification(node, operator, visit):
    await operator.account("bob@example.com")
    device = Peer(node, "bob@example.com")
    await device.log_in()
    body = {"to": "bob@example.com", "payload": {"n": 1}, "link": "https://example.com/orders/17"}
    sent = await operator.ok("POST", "/v1/notifications", body)
    message = await device.messages.take(lambda m: "link" in "".join(m.itertext()), "the notification")
    link = json.loads("".join(message.itertext()))["link"]
    status, location, _ = await visit(link.removeprefix(f"https://{HOST}"))
    assert (status, location) == (308, "https://example.com/orders/17")
    trace = await operator.eventually(f"/v1/notifications/{sent['id']}", lambda trace: trace["state"] == "opened")
    assert trace["opened_by"] == "other"
    assert trace["acknowledged_by"] in ("stream-management", "receipt", "socket", "link")
    await device.close()

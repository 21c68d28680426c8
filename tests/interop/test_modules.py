"""Modules: the examples in their languages, and what happens to clients while modules come, fail and go."""

import asyncio
import json
import os
import subprocess

import pytest

from harness.api import Api
from harness.inbox import Inbox
from harness.peer import CLIENT, JSON, Peer
from harness.server import BINARY, ROOT, Server, unique
from harness.transcript import blocks
from harness.wasm import DROP, PASS, TRAP

PAGE = ROOT / "docs/book/modules.md"
EXAMPLES = ROOT / "examples/modules"
TOOLS = {
    "ZIG": f"{ROOT}/target/interop/modules/bin/python -m ziglang",
    "ASC": f"{ROOT}/tests/interop/node_modules/.bin/asc",
}
ERROR = "{urn:ietf:params:xml:ns:xmpp-stanzas}"
MESSAGES = 600


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The examples, built from their sources."""
    folder = tmp_path_factory.mktemp("modules")
    environment = TOOLS | os.environ
    done = subprocess.run(
        [EXAMPLES / "build", folder], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


STRICT = """
#include "carillon_hooks.h"

static char config[16];

__attribute__((export_name("_initialize"))) void initialize(void) {
    if (carillon_field(CARILLON_CONFIG, config, sizeof config) == 3) __builtin_trap();
}

CARILLON_HOOK(submit_message) { return CARILLON_DROP; }
"""


GUARD = """
#include "carillon_hooks.h"

static char text[256];

static int begins(int field, char letter) {
    return carillon_field(field, text, sizeof text) > 0 && text[0] == letter;
}

CARILLON_HOOK(authorise) {
    if (!begins(CARILLON_FROM, 'x')) return CARILLON_PASS;
    carillon_output(CARILLON_OUT_CONDITION, "account-disabled", 16);
    return CARILLON_REJECT;
}

CARILLON_HOOK(arrived) { return begins(CARILLON_BODY, 'd') ? CARILLON_DROP : CARILLON_PASS; }

CARILLON_HOOK(opened) {
    carillon_count(0, 1);
    return CARILLON_PASS;
}

CARILLON_HOOK(closed) {
    carillon_count(1, 1);
    carillon_log(text, carillon_field(CARILLON_REASON, text, sizeof text));
    return CARILLON_PASS;
}

CARILLON_HOOK(push_render) {
    carillon_output(CARILLON_OUT_TITLE, "News", 4);
    carillon_output(CARILLON_OUT_BODY, "something", 9);
    return CARILLON_REPLACE;
}
"""


OBSERVER = """
#include "carillon_hooks.h"

static char line[256];

static int add(int field, int at) {
    int size = carillon_field(field, line + at, (int)sizeof line - at);
    if (size < 0) line[at] = '-', size = 1;
    line[at + size] = ' ';
    return at + size + 1;
}

CARILLON_HOOK(event) {
    int at = add(CARILLON_TYPE, 0);
    at = add(CARILLON_TO, at);
    at = add(CARILLON_ID, at);
    at = add(CARILLON_STATE_OF, at);
    carillon_log(line, add(CARILLON_ACKNOWLEDGED_BY, at) - 1);
    return CARILLON_PASS;
}
"""


@pytest.fixture(scope="module")
def settings():
    return {"push__allow_addresses": '["127.0.0.0/8"]'}


def compiled(folder, name, code):
    """A module in C."""
    (folder / "carillon_hooks.h").write_bytes((EXAMPLES / "include/carillon_hooks.h").read_bytes())
    (folder / f"{name}.c").write_text(code)
    zig = os.environ.get("ZIG", TOOLS["ZIG"]).split()
    flags = ["-target", "wasm32-freestanding", "-O2", "-nostdlib", "-Wl,--no-entry", "-o", f"{name}.wasm", f"{name}.c"]
    subprocess.run([*zig, "cc", *flags], cwd=folder, check=True, timeout=120)
    return folder / f"{name}.wasm"


@pytest.fixture
def strict(tmp_path):
    """A module that does not start with the configuration `bad`."""
    return compiled(tmp_path, "strict", STRICT)


@pytest.fixture
def guard(tmp_path):
    """A module that has every hook that is about accounts."""
    return compiled(tmp_path, "guard", GUARD)


async def push(server, file, *activate):
    """Pushes a module and activates it."""
    pushed = await server.command("module", "push", str(file))
    assert pushed.returncode == 0, pushed.stderr
    version = pushed.stdout.strip()
    done = await server.command("module", "activate", version, *activate)
    assert done.returncode == 0, done.stderr
    return version


def written(tmp_path, name, code):
    (tmp_path / name).write_bytes(code)
    return tmp_path / name


def said(module, verdict):
    """How often it said so, as far as its node has published it."""
    return module["figures"] and module["figures"]["verdicts"].get(verdict)


async def text(peer):
    return (await peer.messages.take(lambda m: m.findtext(CLIENT + "body"), "a message")).findtext(CLIENT + "body")


async def test_a_filter_in_c_masks_words(server, api, peer, built):
    alice, bob = await peer(), await peer()
    await push(server, built / "profanity.wasm", "--config", "darn,heck")
    for spoken, heard in [
        ("You darn fool", "You **** fool"),
        ("HECK & Darnley", "**** & Darnley"),
        ("heckdarn darn", "heckdarn ****"),
        ("nothing", "nothing"),
    ]:
        alice.chat(bob.bare, spoken)
        assert await text(bob) == heard
    seen = await api.eventually("/v1/admin/modules/profanity", lambda module: said(module, "replace") == 3)
    assert seen["figures"]["counts"][0] == 3
    assert (await server.command("module", "deactivate", "profanity", "--yes")).returncode == 0
    alice.chat(bob.bare, "darn")
    assert await text(bob) == "darn"


async def test_a_limiter_in_assemblyscript_counts_accounts(server, peer, built):
    alice, bob, carol = await peer(), await peer(), await peer()
    await push(server, built / "rate-limit.wasm", "--config", "3")
    for number in range(4):
        alice.chat(bob.bare, str(number))
    assert [await text(bob) for _ in range(3)] == ["0", "1", "2"]
    error = await alice.messages.take(lambda m: m.get("type") == "error", "an error")
    assert error.find(f"{CLIENT}error/{ERROR}resource-constraint") is not None
    assert error.findtext(f"{CLIENT}error/{ERROR}text") == "too many messages"
    carol.chat(bob.bare, "carol's")
    assert await text(bob) == "carol's"
    assert (await server.command("module", "deactivate", "rate-limit", "--yes")).returncode == 0


async def test_a_router_in_go_changes_notifications(server, api, peer, built):
    await push(server, built / "geo.wasm", "--config", "us=us.example.org,eu=eu.example.org")
    await api.account("eu-device@localhost")
    device = await peer("eu-device@localhost", plugins=["xep_0198"])
    await api.notify("eu-device", {"host": "auto", "n": 1})
    message = await device.message(type="headline")
    assert json.loads(message.findtext(JSON)) == {"host": "eu.example.org", "n": 1}
    assert (await server.command("module", "deactivate", "geo", "--yes")).returncode == 0


async def test_a_module_decides_about_logins_arrivals_and_pushes_and_is_told_of_sessions(server, api, peer, guard):
    pushes = Inbox("the webhook")

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("content-length: ")[2].partition("\r")[0]
        pushes.put(json.loads(await reader.readexactly(int(length))))
        writer.write(b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n")
        writer.close()

    await push(server, guard)
    alice, bob = await peer(), await peer()
    alice.chat(bob.bare, "dropped")
    alice.chat(bob.bare, "kept")
    assert await text(bob) == "kept"
    away, stranger = (f"{unique(name)}@localhost" for name in ("away", "x"))
    await api.account(away)
    await api.account(stranger)
    assert set(await Peer(server, stranger).failed_login()) == {"account-disabled"}
    webhook = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with webhook:
        url = f"http://127.0.0.1:{webhook.sockets[0].getsockname()[1]}/hook"
        body = {"account": away, "node": "hook", "shown": "whole", "webhook": {"url": url}}
        await api.ok("POST", "/v1/push/registrations", body, status=201)
        alice.chat(away, "secret")
        told = await pushes.take()
    assert told["from"] == alice.bare
    assert (told["body"], told["alert"]) == ("something", {"title": "News", "body": "something"})
    await bob.close()
    path = "/v1/admin/modules/guard"
    await api.eventually(path, lambda module: said(module, "noted") == 3 and module["figures"]["counts"][:2] == [2, 1])
    assert (await server.command("module", "logs", "guard")).stdout.split()[-1] == "closed"
    assert (await server.command("module", "deactivate", "guard", "--yes")).returncode == 0
    await Peer.connect(server, stranger, presence=False)


async def test_a_module_is_told_of_the_events_that_webhooks_are_told_of(server, api, peer, tmp_path):
    await push(server, compiled(tmp_path, "observer", OBSERVER))
    device = await peer(plugins=["xep_0184"])
    async with api.events() as events:
        sent = await api.notify(device.bare, "hello")
        await events.state(sent["id"], "acknowledged")
    await api.notify(device.bare, "not stored", audience="active")
    seen = await api.eventually("/v1/admin/modules/observer", lambda module: said(module, "noted"))
    assert (said(seen, "noted"), seen["figures"]["failures"]) == (1, {})
    logs = (await server.command("module", "logs", "observer")).stdout
    assert f"notification {device.bare} {sent['id']} acknowledged receipt" in logs
    assert (await server.command("module", "deactivate", "observer", "--yes")).returncode == 0


async def test_the_tutorial_runs_as_it_stands(server, tmp_path):
    (tmp_path / "no-links.c").write_text(blocks(PAGE, "c")[0])
    (tmp_path / "carillon_hooks.h").write_bytes((EXAMPLES / "include/carillon_hooks.h").read_bytes())
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "carillon").symlink_to(BINARY)
    zig = os.environ.get("ZIG", TOOLS["ZIG"])
    (bin / "zig").write_text(f'#!/bin/sh\nexec {zig} "$@"\n')
    (bin / "zig").chmod(0o755)
    environment = os.environ | {"PATH": f"{bin}:{os.environ['PATH']}", "CARILLON_DATA_DIR": str(server.data)}
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", "\n".join(blocks(PAGE, "sh")), cwd=tmp_path, env=environment, stdout=-1, stderr=-1
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err.decode()
    assert "activated no-links@" in out.decode()
    assert "5 % of all" in out.decode()


async def test_what_is_no_module_is_refused(server, tmp_path):
    refused = await server.command("module", "push", str(written(tmp_path, "text.wasm", b"hello")))
    assert refused.returncode == 1
    assert "not WebAssembly" in refused.stderr
    unknown = await server.command("module", "activate", "nothing@0123456789")
    assert unknown.returncode == 1
    assert "no module `nothing`" in unknown.stderr


async def test_what_does_not_start_as_it_is_configured_is_not_activated(server, api, peer, strict):
    alice, bob = await peer(), await peer()
    version = await push(server, strict, "--config", "drop")
    alone = await server.command("module", "activate", version, "--node", "other")
    assert alone.returncode == 1
    assert "this node runs alone" in alone.stderr
    refused = await server.command("module", "activate", version, "--config", "bad")
    assert refused.returncode == 1
    assert "the module `strict` cannot be run: it cannot be started: trap" in refused.stderr
    # What was activated before is.
    alice.chat(bob.bare, "dropped")
    await alice.ping()
    path = "/v1/admin/modules/strict"
    seen = await api.eventually(path, lambda module: said(module, "drop") == 1)
    assert seen["activation"]["config"] == "drop"
    active = await server.command("module", "remove", "strict", "--yes")
    assert active.returncode == 1
    assert "deactivate it first" in active.stderr
    assert (await server.command("module", "deactivate", "strict", "--yes")).returncode == 0
    assert (await server.command("module", "remove", "strict", "--yes")).returncode == 0
    assert (await server.command("module", "status", "strict")).returncode == 1


async def test_modules_come_and_go_under_load_and_nothing_is_lost_or_reordered(server, peer, tmp_path):
    """Two senders do not stop while versions are swapped, one that fails among them."""
    senders, bob = [await peer() for _ in range(2)], await peer()
    versions = [await push(server, written(tmp_path, "swapped.wasm", code)) for code in (PASS, TRAP)]
    done = asyncio.Event()

    async def speak(sender):
        for number in range(MESSAGES):
            sender.chat(bob.bare, str(number))
            if number % 50 == 0:
                await sender.ping()

    async def swap():
        swaps = 0
        while not done.is_set():
            result = await server.command("module", "activate", versions[swaps % 2])
            assert result.returncode == 0, result.stderr
            swaps += 1
        return swaps

    async def listen():
        heard = {sender.bare: [] for sender in senders}
        while any(len(numbers) < MESSAGES for numbers in heard.values()):
            message = await bob.messages.take(lambda m: m.findtext(CLIENT + "body"), "a message")
            heard[message.get("from").split("/")[0]].append(int(message.findtext(CLIENT + "body")))
        done.set()
        return heard

    heard, swaps, *_ = await asyncio.gather(listen(), swap(), *map(speak, senders))
    assert all(numbers == list(range(MESSAGES)) for numbers in heard.values())
    assert swaps >= 2
    assert (await server.command("module", "deactivate", "swapped", "--yes")).returncode == 0


async def test_a_restart_has_what_was_activated_and_what_fails_is_rolled_back(tmp_path):
    folder = tmp_path / "node"
    folder.mkdir()
    server = Server(folder)
    try:
        api = Api(server)
        for name in ("alice", "bob"):
            await api.account(f"{name}@localhost")
        await push(server, written(tmp_path, "filter.wasm", DROP))
        server.end()
        server = Server(folder)
        api = Api(server)
        alice, bob = await Peer.connect(server, "alice@localhost"), await Peer.connect(server, "bob@localhost")
        alice.chat(bob.bare, "dropped")
        await alice.ping()
        await push(server, written(tmp_path, "filter.wasm", TRAP))
        # Open: what it fails to decide about goes on, until the version before decides again. Failures of one millisecond count as one.
        for number in range(40):
            alice.chat(bob.bare, str(number))
            await alice.ping()
        await bob.ping()
        given = [await text(bob) for _ in bob.messages.left(lambda m: m.findtext(CLIENT + "body"))]
        assert 5 <= len(given) < 40
        assert given == [str(number) for number in range(len(given))]
        await api.figure_is('module_standing{module="filter"}', lambda standing: standing == 1)
        logs = (await server.command("module", "logs", "filter")).stdout
        assert "is off: it failed 5 times in 10 seconds" in logs
        back = await server.command("module", "rollback", "filter")
        assert back.returncode == 0, back.stderr
        await api.figure_is('module_standing{module="filter"}', lambda standing: standing == 0)
        await alice.close()
        await bob.close()
        await api.aclose()
    finally:
        server.end()

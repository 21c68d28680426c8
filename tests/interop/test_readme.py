"""README's first five minutes, typed as they stand there.

Only what its text names is set otherwise: the ports, so that any machine can run them, and the folder to be in.
"""

import json
import os
import re
import tomllib

import pytest

from harness.inbox import deadline
from harness.program import Program
from harness.server import BINARY, ROOT

SECTION = "Run a node"
# Commands that run until they are interrupted, and what they print once they are ready.
STAYING = {"carillon serve": "Next, in another terminal", "carillon connect": "subscribed to news"}


def commands(section):
    """The commands of a section's console blocks; one that ends in a backslash goes on in the next line."""
    readme = (ROOT / "README.md").read_text()
    text = re.search(rf"^## {section}$(.*?)^## ", readme, re.MULTILINE | re.DOTALL)[1]
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield command.strip()


@pytest.fixture
async def opened():
    terminals = []
    yield terminals
    for terminal in reversed(terminals):
        await terminal.close()


async def test_the_first_five_minutes(tmp_path, opened):
    assert BINARY.name == "carillon"
    environment = {
        "PATH": f"{BINARY.parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        **{f"CARILLON_{listener}_PORT": "0" for listener in ("C2S", "C2S_TLS", "WEBSOCKET", "HTTP")},
    }
    typed = list(commands(SECTION))
    assert len(typed) == 8, typed
    printed = {}
    for command in typed:
        terminal = await Program.shell(command, tmp_path, environment)
        opened.append(terminal)
        ready = next((words for start, words in STAYING.items() if command.startswith(start)), None)
        if ready:
            await terminal.line(ready)
        else:
            assert await terminal.ended() == 0, (command, terminal.errors)
            printed[command] = terminal.lines.left()
        node = tmp_path / "data" / "node.json"
        environment["CARILLON_URL"] = json.loads(node.read_text())["http"]
    serve, device = [opened[i] for i, command in enumerate(typed) if command.split()[1] in ("serve", "connect")]

    sent = next(lines for command, lines in printed.items() if command.startswith("carillon send"))
    assert any(line.startswith("acknowledged") for line in sent), sent
    for words in (["notification", '{"hello":1}'], ["topic news", '{"sky":"rain"}'], ["notification", "Your turn"]):
        await device.line(*words)
    for terminal in (device, serve):
        async with deadline("the end"):
            assert await terminal.interrupt() == 0, terminal.errors


async def test_the_load_test_passes_on_a_new_node(tmp_path, opened):
    """The usual ports are replaced by those that the node got."""
    environment = {
        "PATH": f"{BINARY.parent}:{os.environ['PATH']}",
        **{f"CARILLON_{listener}_PORT": "0" for listener in ("C2S", "C2S_TLS", "WEBSOCKET", "HTTP")},
    }
    serve, scenarios, test = commands("Load test a server")
    node = await Program.shell(serve, tmp_path, environment)
    opened.append(node)
    c2s, http = [(await node.line(what)).rsplit(":", 1)[1] for what in ("XMPP, STARTTLS", "HTTP API")]
    test = test.replace("127.0.0.1:5222", f"127.0.0.1:{c2s}").replace("127.0.0.1:8080", f"127.0.0.1:{http}")
    for command in (scenarios, test):
        terminal = await Program.shell(command, tmp_path, environment)
        opened.append(terminal)
        async with deadline(command, 120):
            assert await terminal.process.wait() == 0, (terminal.errors, terminal.lines.left())
    assert "Passed" in (tmp_path / "report.html").read_text()


async def test_what_serve_says_to_type_next_works(tmp_path, opened):
    """A data folder with a space in its name: what is printed is for a shell."""
    folder = tmp_path / "its data"
    ports = [f"--set={listener}.port=0" for listener in ("c2s", "c2s_tls", "websocket", "http")]
    serve = await Program.open("serve", "--data-dir", str(folder), *ports)
    opened.append(serve)
    environment = {"PATH": f"{BINARY.parent}:{os.environ['PATH']}", "XDG_STATE_HOME": str(tmp_path / "state")}
    add = await serve.line("  carillon account create")
    connect = await serve.line("  carillon connect")
    for place in ("XMPP, STARTTLS", "HTTP API", "Console", "Admin key"):
        assert [line for line in serve.lines.left() if place in line], place
    added = await Program.shell(add.strip(), tmp_path, environment)
    opened.append(added)
    assert await added.ended() == 0, added.errors
    device = await Program.shell(connect.strip(), tmp_path, environment)
    opened.append(device)
    await device.line("logged in")
    for terminal in (device, serve):
        assert await terminal.interrupt() == 0, terminal.errors
    # The second start knows the account, and suggests nothing of the first.
    again = await Program.open("serve", "--data-dir", str(folder), *ports)
    opened.append(again)
    await again.line("carillon status --data-dir")
    assert not [line for line in again.lines.left() if "account create" in line]
    assert await again.interrupt() == 0, again.errors


def test_both_ways_onto_the_path_lead_to_the_binary():
    """The folder that is installed from has a package of that name, and the other is where a build puts it."""
    readme = (ROOT / "README.md").read_text()
    package = re.search(r"`cargo install --locked --path (\S+)`", readme)[1]
    assert tomllib.loads((ROOT / package / "Cargo.toml").read_text())["package"]["name"] == BINARY.name
    profile = re.search(r"`PATH=\$PWD/target/(\w+):\$PATH`", readme)[1]
    assert f"cargo run --profile {profile} -p {BINARY.name} -- demo" in (ROOT / "Makefile").read_text()

"""`carillon upgrade` and its socket, and what service managers and watching parents see of an upgrade."""

import asyncio
import json
import os
import shutil
import socket
import stat

import pytest

from harness.api import Api
from harness.peer import Peer
from harness.program import Program
from harness.server import BINARY, run
from harness.watched import Watched, present


@pytest.fixture
def node(tmp_path):
    """Starts nodes; what a failed test leaves behind is ended."""
    started = []

    def node(folder=None, environment=None, **settings):
        started.append(Watched(folder or tmp_path, environment, **settings))
        return started[-1]

    yield node
    for server in started:
        server.close()


@pytest.fixture
async def alice(request):
    """Logs in a client on a node, by the name of its account."""
    clients = []

    async def log_in(server, name="alice", **options):
        api = Api(server)
        await api.account(f"{name}@localhost")
        await api.aclose()
        clients.append(Peer(server, f"{name}@localhost"))
        await clients[-1].log_in(**options)
        return clients[-1]

    yield log_in
    for client in clients:
        await client.close()


async def test_the_node_goes_on_in_the_process_of_the_same_binary(node, alice):
    server = node()
    client = await alice(server)
    path = server.data / "control.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done = await server.upgrade("--json")
    assert done.returncode == 0, (done, server.log.read_text())
    *steps, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(step) for step in steps] == [["step"], ["step"]]
    assert last["done"]["pid"] == present(server) != server.process.pid
    assert last["done"]["sessions"] == 1
    assert 0 <= last["done"]["silence_ms"] < 5000
    await client.ping()
    # For people, by a binary that the command names; the socket is the new process' now.
    copy = server.folder / "carillon"
    shutil.copy(BINARY, copy)
    before = present(server)
    done = await server.upgrade("--binary", os.path.relpath(copy))
    assert done.returncode == 0, (done, server.log.read_text())
    assert f"starting {copy}\n" in done.stdout
    assert f"process {present(server)} serves the node, with 1 sessions" in done.stdout.splitlines()[-1]
    assert present(server) != before
    await client.ping()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server.terminate()
    assert not path.exists()
    assert (await server.command("upgrade")).returncode == 3


async def test_what_cannot_take_over_is_refused_and_the_node_goes_on(node, alice):
    server = node()
    client = await alice(server)
    done = await server.command("upgrade", "--binary", "/bin/false")
    assert (done.returncode, "it ended; the node goes on as it was" in done.stderr) == (1, True), done
    done = await server.command("upgrade", "--binary", "/bin/false", "--json")
    assert "it ended" in json.loads(done.stdout.splitlines()[-1])["failed"]
    done = await server.command("upgrade", "--binary", str(server.folder / "nothing"))
    assert (done.returncode, "No such file" in done.stderr) == (2, True), done
    done = await server.command("upgrade", "--binary", str(server.log))
    assert (done.returncode, "cannot be run: Permission denied" in done.stderr) == (1, True), done
    done = await server.command("upgrade", "--url", server.http)
    assert done.returncode == 2, done
    assert present(server) == server.process.pid
    await client.ping()
    server.end(expected=["not handed over"])


def test_without_a_node_the_exit_code_says_so(tmp_path):
    done = run("upgrade", "--data-dir", str(tmp_path))
    assert (done.returncode, f"no node runs on {tmp_path}" in done.stderr) == (3, True), done
    # A socket that a process left which was killed.
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "control.sock"))
    assert run("upgrade", "--data-dir", str(tmp_path)).returncode == 3


async def test_a_socket_that_was_left_is_replaced_and_a_long_folder_will_do(node, tmp_path):
    folder = tmp_path / ("d" * 130)
    folder.mkdir()
    node(folder).kill()
    assert (folder / "data/control.sock").exists()
    server = node(folder)
    done = await server.upgrade()
    assert done.returncode == 0, (done, server.log.read_text())
    server.terminate()


async def test_a_client_that_says_nothing_holds_up_nobody(node):
    server = node()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(server.data / "control.sock"))
        done = await server.upgrade()
        assert done.returncode == 0, (done, server.log.read_text())
    server.terminate()


async def test_a_demo_is_not_handed_over(tmp_path):
    ports = [word for name in ("c2s", "c2s_tls", "websocket", "http") for word in ("--set", f"{name}.port=0")]
    demo = await Program.open("demo", "--data-dir", str(tmp_path), *ports)
    try:
        await demo.line("Ctrl-C ends the demo")
        done = await asyncio.to_thread(run, "upgrade", "--data-dir", str(tmp_path))
        assert (done.returncode, "a demo node cannot be upgraded" in done.stderr) == (1, True), done
        assert await demo.interrupt() == 0
    finally:
        await demo.close()

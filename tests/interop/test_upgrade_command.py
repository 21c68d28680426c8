"""`carillon upgrade` and its socket, and what service managers and watching parents see of an upgrade."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from harness.api import Api
from harness.peer import TLS_1_2, Peer
from harness.program import Program
from harness.server import BINARY, run
from harness.upgrade import FAKE, place_binary
from harness.watched import Contained, Manager, Process, Watched, present


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
        clients.append(Peer(server, f"{name}@localhost", **options))
        await clients[-1].log_in()
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
    place_binary(copy)
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
    assert (done.returncode, "it ended; the old process still serves the node" in done.stderr) == (1, True), done
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


async def test_who_asked_is_told_that_the_node_is_down(node, tmp_path):
    server = node()
    other = tmp_path / "other"
    other.write_text(f"#!{sys.executable}\n" + FAKE.read_text().replace("MODE_OF_THE_TEST", "ends when it may go on"))
    other.chmod(0o755)
    done = await server.command("upgrade", "--binary", str(other))
    assert done.returncode == 1, done
    assert "the node is down: the new process failed before it served: it ended" in done.stderr
    assert await asyncio.to_thread(server.process.wait, 20) == 1


async def test_nobody_else_may_ask(server):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("another user is needed")
    path = server.data / "control.sock"
    server.data.chmod(0o711)
    # By its working folder: those above are nobody's business.
    script = "import socket; s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect('control.sock'); print(s.recv(999))"
    ask = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script]
    refused = await asyncio.to_thread(subprocess.run, ask, cwd=server.data, capture_output=True, text=True)
    assert "PermissionError" in refused.stderr, refused
    # Nor where somebody has changed the mode of the file.
    path.chmod(0o666)
    refused = await asyncio.to_thread(subprocess.run, ask, cwd=server.data, capture_output=True, text=True)
    assert "only the user of the node, or root, may ask for an upgrade" in refused.stdout, refused
    assert present(server) == server.process.pid


async def test_a_process_that_relays_ends_when_it_is_told_to(node, alice):
    server = node(drain__timeout_ms="200ms", drain__spread_ms="0ms")
    client = await alice(server, tls=TLS_1_2(server.tls()))
    done = await server.upgrade()
    assert done.returncode == 0, (done, server.log.read_text())
    await client.ping()
    assert server.is_running()
    # The node stays: this process ends when its time to drain is up.
    server.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.process.wait, 20) == 0
    await client.disconnected()
    server.terminate()


async def test_a_signal_that_comes_during_an_upgrade_is_for_the_node(node):
    server = node()
    server.process.send_signal(signal.SIGUSR2)
    await asyncio.to_thread(wait_for, server.log, "starting ")
    server.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.process.wait, 20) == 0
    log = server.log.read_text()
    [pid] = re.findall(r"handed over.*pid=(\d+)", log) or re.findall(r"handed over pid=(\d+)", log)
    with contextlib.suppress(ProcessLookupError):
        server.processes[int(pid)] = Process(int(pid))
        assert server.processes[int(pid)].has_ended(20), server.log.read_text()
    assert not (server.data / "node.json").exists(), server.log.read_text()


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


async def test_the_service_manager_is_told_of_the_new_process_before_it_hears_it(node, tmp_path):
    manager = Manager(tmp_path / "notify")
    # As systemd does: WATCHDOG_PID names the process that is started.
    start = tmp_path / "start"
    start.write_text(f'#!/bin/sh\nWATCHDOG_PID=$$ exec "{BINARY}" "$@"\n')
    start.chmod(0o755)
    environment = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "1000000"}
    server = node(environment=environment, binary=start)
    try:
        pid, lines = await manager.told()
        assert (pid, lines[0]) == (server.process.pid, "READY=1")
        for _ in range(2):
            old = present(server)
            done = await server.upgrade()
            assert done.returncode == 0, (done, server.log.read_text())
            new = present(server)
            told = await manager.told()
            while told == (old, ["WATCHDOG=1"]):
                told = await manager.told()
            assert told == (old, [f"MAINPID={new}", "WATCHDOG=1"])
            pid, lines = await manager.told()
            assert (pid, lines[0]) == (new, "READY=1")
            # The watchdog's time is the new process' now.
            for _ in range(2):
                assert await manager.told() == (new, ["WATCHDOG=1"])
        server.terminate()
        told = await manager.told()
        while told == (new, ["WATCHDOG=1"]):
            told = await manager.told()
        assert (told[0], told[1][0]) == (new, "STOPPING=1")
    finally:
        manager.close()


async def test_a_process_that_is_watched_stays_and_ends_as_the_node_does(node, alice):
    server = node(upgrade__stay="true")
    first = await alice(server)
    # Its connection cannot leave the process: it is relayed by that which stays.
    relayed = await alice(server, "bob", tls=TLS_1_2(server.tls()))
    for _ in range(2):
        done = await server.upgrade()
        assert done.returncode == 0, (done, server.log.read_text())
        await first.ping()
        await relayed.ping()
    start, middle, last = server.processes.values()
    assert start.pid == server.process.pid
    assert last.pid == present(server)
    assert not start.has_ended()
    await asyncio.to_thread(wait_for, server.log, "a process that had the node before has ended")
    # Reaped, not only ended.
    assert not os.path.exists(f"/proc/{middle.pid}")
    start.send(signal.SIGHUP)
    await asyncio.to_thread(wait_for, server.log, "reloaded")
    start.send(signal.SIGTERM)
    assert await asyncio.to_thread(server.process.wait, 20) == 0, server.log.read_text()
    assert all(process.has_ended(20) for process in server.processes.values())
    await first.disconnected()
    await relayed.disconnected()
    assert not (server.data / "node.json").exists()


async def test_a_process_that_stays_has_the_exit_code_of_a_node_that_is_killed(node):
    server = node(upgrade__stay="true")
    done = await server.upgrade()
    assert done.returncode == 0, (done, server.log.read_text())
    server.note().send(signal.SIGKILL)
    assert await asyncio.to_thread(server.process.wait, 20) == 128 + signal.SIGKILL


async def test_pid_1_stays_and_ends_as_the_node_does(tmp_path, alice):
    if why := Contained.why_not():
        pytest.skip(f"no PID namespace here: {why}")
    server = Contained(tmp_path)
    try:
        client = await alice(server)
        pids = [present(server)]
        for _ in range(2):
            done = await server.command("upgrade")
            assert done.returncode == 0, (done, server.log.read_text())
            pids.append(present(server))
            await client.ping()
        assert pids[0] == 1
        assert len(set(pids)) == 3
        # An upgrade by signal is passed on as well.
        server.init.send(signal.SIGUSR2)
        await asyncio.to_thread(wait_for, server.log, "took over", 3)
        await client.ping()
        server.init.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, 20) == 0, server.log.read_text()
        await client.disconnected()
        assert not (server.data / "node.json").exists()
        assert not (server.data / "control.sock").exists()
    finally:
        server.close()


def wait_for(log, text, times=1):
    """Waits until the log says it so often."""
    with subprocess.Popen(["tail", "-n", "+1", "-F", str(log)], stdout=subprocess.PIPE, text=True) as tail:
        timer = threading.Timer(20, tail.kill)
        timer.start()
        found = 0
        for line in tail.stdout:
            found += text in line
            if found == times:
                break
        timer.cancel()
        tail.kill()
    assert found == times, log.read_text()

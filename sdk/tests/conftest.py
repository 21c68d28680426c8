"""A node, a proxy before it that fails when it is told to, and what both say where they are."""

import os
import shutil
import signal
import subprocess
import threading

import pytest
from faulty import Faulty

from harness.server import BINARY, ROOT, Server

SCOPES = "send,topics,enrol,links,matches"
ALICE = "alice@localhost"


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One node for all SDKs, with what their operations need."""
    settings = {
        "invitations__enabled": "true",
        "links__hosts": "go.example.com=localhost",
        "rooms__events": "all",
        # Tokens are for connections with TLS.
        "websocket__tls": "true",
        "webhooks__allow_addresses": "127.0.0.0/8",
    }
    server = Server(tmp_path_factory.mktemp("node"), **settings)
    yield server
    server.end()


@pytest.fixture(scope="session")
def faulty(server):
    faulty = Faulty(server.port("http"))
    yield faulty
    faulty.end()


@pytest.fixture(scope="session")
def carillon(server):
    """Runs a command of the binary beside the node; what it printed."""

    def run(*arguments):
        command = [str(BINARY), *arguments, "--data-dir", str(server.data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def alice(server, carillon):
    """A device that is there all the time, and acknowledges what it is given."""
    carillon("account", "create", ALICE, "--password", "secret")
    command = [BINARY, "connect", ALICE, "--password", "secret", "--data-dir", server.data]
    device = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert "logged in" in device.stdout.readline()
    # What it prints is of no interest, and may not fill the pipe.
    reader = threading.Thread(target=device.stdout.read)
    reader.start()
    yield ALICE
    device.terminate()
    device.wait()
    reader.join()
    device.stdout.close()


@pytest.fixture(scope="session")
def environment(server, faulty, carillon, alice):
    """What the tests of every language read: where the node is, and with which key."""
    key = next(word for word in carillon("key", "create", "sdk", "--scope", SCOPES).split() if word.startswith("crl_"))
    return {
        **os.environ,
        "CARILLON": str(BINARY),
        "CARILLON_URL": server.http,
        "CARILLON_KEY": key,
        "CARILLON_ADMIN_KEY": server.key,
        "CARILLON_FAULTY": faulty.url,
        "CARILLON_DATA_DIR": str(server.data),
        "CARILLON_WEBSOCKET": f"wss://localhost:{server.port('websocket')}/xmpp-websocket",
        "NODE_EXTRA_CA_CERTS": str(server.certificate),
        "NO_PROXY": "*",
    }


@pytest.fixture(scope="session")
def program(environment):
    """Runs a program to its end, which has to be a good one; what it printed."""

    def run(*command, cwd, more=None, timeout=90):
        assert shutil.which(command[0]), f"{command[0]} is not installed"
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env={**environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A group of its own, so that what it started ends with it.
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"{command} did not end:\n{process.communicate()[0]}") from None
        assert process.returncode == 0, output
        return output

    return run


@pytest.fixture(scope="session")
def built(program):
    """The packages in TypeScript, compiled."""
    for folder in ("typescript", "device-typescript", "match-typescript"):
        program("npx", "tsc", "-p", folder, cwd=ROOT / "sdk")

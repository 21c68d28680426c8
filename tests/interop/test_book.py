"""The pages of the book for those who write devices: their code runs as it stands, and their conversations go as shown."""

import asyncio
import base64
import hashlib
import hmac
import os
import re
import shutil

import pytest

from harness.api import Api
from harness.inbox import Inbox, deadline
from harness.raw import Raw
from harness.server import ROOT, Server
from harness.transcript import Replay, blocks

BOOK = ROOT / "docs/book"
PROTOCOL = BOOK / "protocol.md"
QUICKSTART = BOOK / "quickstart-devices.md"
PANEL = BOOK / "devices/panel.rb"
SECRET = "open-sesame"


class Program:
    """A program and the lines it prints."""

    def __init__(self, process):
        self.process = process
        self.lines = Inbox("a program of the book")
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, *command, **options):
        pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        return cls(await asyncio.create_subprocess_exec(*map(str, command), stdout=pipe, stderr=both, **options))

    async def _read(self):
        while line := await self.process.stdout.readline():
            self.lines.put(line.decode().rstrip())

    async def prints(self, *parts):
        """Waits for a line that has all of these."""
        return await self.lines.take(lambda line: all(part in line for part in parts), f"a line with {parts}")

    async def code(self):
        async with deadline("the end of the program"):
            return await self.process.wait()

    async def end(self):
        if self.process.returncode is None:
            self.process.terminate()
        await self.code()
        await self._reader


@pytest.fixture
async def program():
    """Starts programs that end with the test."""
    started = []

    async def start(*command, **options):
        started.append(await Program.start(*command, **options))
        return started[-1]

    yield start
    for running in started:
        await running.end()


@pytest.fixture(scope="module")
def push(tmp_path_factory):
    """The server of the pages, which asks a silent client after a second and not after a minute, and again six seconds later."""
    server = Server(tmp_path_factory.mktemp("push"), domain="push.example", ping__idle_ms=1000, ping__wait_ms=5000)
    yield server
    server.end()


@pytest.fixture
async def push_api(push):
    api = Api(push)
    yield api
    await api.aclose()


@pytest.fixture
async def kitchen(push_api):
    """The device of the pages, as if it were new."""
    await push_api.call("DELETE", "/v1/devices/kitchen")
    await push_api.call("DELETE", "/v1/topics/weather")
    await push_api.ok("PUT", "/v1/topics/weather", {})
    return await push_api.ok("POST", "/v1/devices", {"id": "kitchen", "secret": SECRET})


def panel(server, *topics, certificate=None, secret=SECRET):
    """How the page starts the Ruby device."""
    ruby = shutil.which("ruby")
    assert ruby, "ruby is not installed: run tests/interop/setup"
    address = f"127.0.0.1:{server.port('c2s_tls')}"
    command = [ruby, "-w", PANEL, "kitchen@push.example", address, certificate or server.certificate, *topics]
    return command, {"env": {**os.environ, "CARILLON_SECRET": secret}}


async def test_the_enrolment_is_as_shown(kitchen):
    shown = re.search(r"201 Created\n\{(.*?)\n```", PROTOCOL.read_text(), re.S)[1]
    keys = lambda text: re.findall(r'"(\w+)":', text)  # noqa: E731
    endpoints = kitchen["endpoints"]
    assert keys(shown) == [*kitchen, *endpoints]
    assert kitchen["jid"] == "kitchen@push.example"
    assert endpoints["host"] == "push.example"
    assert endpoints["websocket_url"].startswith("ws://push.example:")


@pytest.mark.parametrize("conversation", ["a whole session", "coming back"])
async def test_conversations_go_as_shown(push, push_api, kitchen, conversation):
    shown = blocks(PROTOCOL, "transcript")
    assert len(shown) == 3
    replay = Replay(push_api, SECRET)
    # The page has the default.
    replay.now["60"] = "1"
    for block in shown[2:] if conversation == "a whole session" else shown[:2]:
        raw = await Raw.connect(push, "c2s_tls", name="push.example")
        await replay.play(raw, block)
        await raw.close()


def test_the_numbers_of_scram_are_right():
    (block,) = blocks(PROTOCOL, "scram")
    shown = dict(line.split(" = ", 1) for line in (re.sub(" +=", " =", line, count=1) for line in block.splitlines()))
    fields = dict(field.split("=", 1) for field in shown["server's message"].split(","))
    salted = hashlib.pbkdf2_hmac("sha256", SECRET.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    message = shown["AuthMessage"].encode()
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    signature = hmac.digest(stored_key, message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    of_server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
    names = ["SaltedPassword", "ClientKey", "StoredKey", "ClientSignature", "ClientProof", "ServerSignature"]
    for name, value in zip(names, [salted, client_key, stored_key, signature, proof, of_server], strict=True):
        assert shown[name].endswith(f" = {base64.b64encode(value).decode()}"), name
    # They are those of the whole session below.
    said = [
        base64.b64decode(text).decode() for text in re.findall(r">([\w+/]{40,}=*)<", blocks(PROTOCOL, "transcript")[2])
    ]
    proof, of_server = (base64.b64encode(value).decode() for value in (proof, of_server))
    last = f"c=biws,r={fields['r']},p={proof}"
    assert said == ["n,,n=kitchen,r=rOprNGfwEbeRWgbNEkqO", shown["server's message"], last, f"v={of_server}"]


async def test_the_ruby_device(push, push_api, kitchen, program):
    command, options = panel(push, "weather", "nowhere")
    device = await program(*command, **options)
    await device.prints("online kitchen@push.example/panel")
    await device.prints("following weather")
    await device.prints("cannot follow nowhere")

    await push_api.ok("POST", "/v1/topics/weather/items", {"id": "monday", "payload": {"sky": "é <&>"}})
    await device.prints("weather item monday", '{"sky":"é <&>"}')
    await push_api.ok("DELETE", "/v1/topics/weather/items/monday")
    await device.prints("weather retract monday")
    sent = await push_api.notify("kitchen@push.example", {"title": "Dinner"})
    await device.prints("notification", '{"title":"Dinner"}')
    path = f"/v1/notifications/{sent['id']}"
    trace = await push_api.eventually(path, lambda trace: trace["state"] == "acknowledged")
    assert trace["acknowledged_by"] == "receipt"

    # It says nothing of its own accord now: what the server receives are answers to pings.
    before = await push_api.figure("stanzas_received_total")
    await push_api.figure_is("stanzas_received_total", lambda figure: figure >= before + 2)
    assert not device.lines.left(lambda line: "offline" in line)

    # It comes back, and what waited is there.
    await push_api.ok("DELETE", "/v1/admin/sessions/kitchen@push.example%2Fpanel")
    await device.prints("offline: policy-violation; back in")
    await push_api.notify("kitchen@push.example", {"title": "Tea"})
    await device.prints("online")
    await device.prints("notification", '{"title":"Tea"}')


async def test_the_ruby_device_trusts_no_other_certificate(push, server, kitchen, program):
    command, options = panel(push, certificate=server.certificate)
    device = await program(*command, **options)
    await device.prints("offline", "certificate verify failed")


async def test_the_ruby_device_gives_up_with_a_wrong_secret(push, kitchen, program):
    command, options = panel(push, secret="guessed")
    device = await program(*command, **options)
    await device.prints("refused: not-authorized")
    assert await device.code() == 1


@pytest.mark.parametrize("language", ["python", "javascript", "ruby"])
async def test_quickstarts_run_as_they_stand(server, api, program, language):
    enrol, send, run_ruby = blocks(QUICKSTART, "sh")
    await api.call("DELETE", "/v1/devices/kitchen")
    # The defaults of the page, with the ports of this server.
    environment = {**os.environ, "HTTP": server.http, "PORT": str(server.port("c2s_tls"))}
    environment["NODE_EXTRA_CA_CERTS"] = str(server.certificate)
    work = server.folder
    (work / "device.py").write_text(blocks(QUICKSTART, "python")[0])
    # Where Node finds the packages.
    script = ROOT / "tests/interop/node_modules/.quickstart.mjs"
    script.write_text(blocks(QUICKSTART, "javascript")[0])
    run = {
        "python": f"exec {shutil.which('python3', path=os.path.dirname(os.sys.executable))} device.py",
        "javascript": f"exec node {script}",
        "ruby": f"cd {BOOK}\n{run_ruby}",
    }[language]
    device = await program("bash", "-euc", f"{enrol}\n{run}", cwd=work, env=environment)
    await device.prints("following weather" if language == "ruby" else "online")
    told = enrol.split('api "$HTTP', 1)[0] + send
    sender = await program("bash", "-euc", told, cwd=work, env=environment)
    assert await sender.code() == 0
    await device.prints("weather" if language == "ruby" else "pubsub.localhost", "sky", "clear")
    await device.prints("notification" if language == "ruby" else "push.localhost", "title", "Dinner")
    await api.call("DELETE", "/v1/topics/weather")

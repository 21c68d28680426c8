"""A cell whose engines are reached with TLS alone, and let in nobody without a certificate: PostgreSQL, NATS and Redis."""

import asyncio
import contextlib
import os
import subprocess

import pytest

from harness.api import Api
from harness.cell import Cell
from harness.nats import Nats
from harness.peer import CLIENT
from harness.postgres import Postgres
from harness.raw import Raw
from harness.receiver import Authority
from harness.redis import Redis
from harness.server import BINARY, run, unique

# Whom the certificates of the nodes are for: NATS and PostgreSQL let nobody else in.
NODE = "carillon"
PASSWORD = "correct horse"
LOG_S = 30


class SecuredCell(Cell):
    """Nodes and engines with certificates of one authority."""

    def __init__(self, folder, nodes):
        self.authority, self.stranger = (Authority(self._folder(folder, name)) for name in ("ours", "theirs"))
        self.redis = Redis(secured=self.authority)
        self.certificate, self.key = self.authority.issue(NODE)
        self.password = folder / "password"
        self.password.write_text(PASSWORD)
        tls = {"ca_file": self.authority.file, "certificate": self.certificate, "key": self.key}
        super().__init__(
            folder,
            nodes,
            store__password_file=self.password,
            cell__redis=self.redis.url,
            **{f"cell__{engine}_{name}": file for engine in ("nats", "redis") for name, file in tls.items()},
        )

    @staticmethod
    def _folder(folder, name):
        made = folder / name
        made.mkdir()
        return made

    def engines(self):
        certificate, key = self.authority.issue("localhost")
        # Who it is, is the name in its certificate; it may use the subjects of its cell, and no others.
        nats = Nats(
            configuration=f"""
            tls {{
              cert_file: "{certificate}", key_file: "{key}", ca_file: "{self.authority.file}"
              verify_and_map: true
            }}
            authorization {{
              users = [{{ user: "{NODE}", permissions: {{ publish: "carillon.>", subscribe: "carillon.>" }} }}]
            }}
            """
        )
        postgres = Postgres(secured=self.authority)
        postgres.sql(f"CREATE ROLE {NODE} LOGIN PASSWORD '{PASSWORD}'", "postgres")
        postgres.sql(f"CREATE DATABASE cell OWNER {NODE} TEMPLATE template0", "postgres")
        return nats, postgres, self.database(postgres, self.authority.file, self.certificate, self.key)

    @staticmethod
    def database(postgres, authority, certificate=None, key=None, host="localhost"):
        shown = f"&sslcert={certificate}&sslkey={key}" if certificate else ""
        return (
            f"postgresql://{NODE}@{host}:{postgres.port}/cell?hostaddr=127.0.0.1"
            f"&sslmode=verify-full&sslrootcert={authority}{shown}"
        )

    def start(self, number):
        self.settings["cell__nats"] = self.nats_url()
        return super().start(number)

    def nats_url(self, host="localhost"):
        return f"tls://{host}:{self.nats.port}"

    def redis_url(self, host="localhost"):
        return f"rediss://{host}:{self.redis.port}"

    def end(self):
        super().end()
        self.redis.end()

    def good(self, folder):
        """The settings of a node of the cell that is not there yet."""
        tls = {"ca_file": self.authority.file, "certificate": self.certificate, "key": self.key}
        return {
            "data_dir": folder / "data",
            **{f"{port}.port": 0 for port in ("c2s", "c2s_tls", "websocket", "http")},
            "store.url": self.url,
            "store.password_file": self.password,
            "node.name": "newcomer",
            "cell.nats": self.nats_url(),
            "cell.redis": self.redis_url(),
            "cell.secret_file": self.secret,
            **{f"cell.{engine}_{name}": file for engine in ("nats", "redis") for name, file in tls.items()},
        }

    def wrong(self, engine, what):
        """What of these settings is wrong, and the words that say so: of the setting, and of what is wrong with it."""
        strange = self.stranger.issue(NODE)
        other = self.authority.issue("somebody-else")
        if engine == "postgres":
            place, ours = self.postgres, (self.certificate, self.key)
            return {
                "authority": ({"store.url": self.database(place, self.stranger.file, *ours)}, "sslrootcert"),
                "name": (
                    {"store.url": self.database(place, self.authority.file, *ours, host="127.0.0.1")},
                    "store.url",
                ),
                "missing": ({"store.url": self.database(place, self.authority.file)}, "set sslcert and sslkey"),
                "stranger": (
                    {"store.url": self.database(place, self.authority.file, *strange)},
                    "see sslcert and sslkey",
                ),
                "user": ({"store.url": self.database(place, self.authority.file, *other)}, "sslcert and sslkey"),
            }[what]
        prefix = f"cell.{engine}"
        url = self.nats_url if engine == "nats" else self.redis_url
        shown = f"{prefix}_certificate", f"{prefix}_key"
        return {
            "authority": ({f"{prefix}_ca_file": self.stranger.file}, f"{prefix}_ca_file"),
            "name": ({prefix: url("127.0.0.1")}, f"{prefix} has to name the server"),
            "missing": (dict.fromkeys(shown, ""), f"set {prefix}_certificate"),
            "stranger": (dict(zip(shown, strange, strict=True)), f"see {prefix}_certificate"),
            # NATS says no more.
            "user": (dict(zip(shown, other, strict=True)), "authorization violation"),
        }[what]


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    cell = SecuredCell(tmp_path_factory.mktemp("cell"), 2)
    yield cell
    cell.end()


def overrides(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


async def test_a_cell_comes_up_and_delivers_and_sessions_are_written_down(cell):
    names = [unique("user") for _ in cell.nodes]
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)
        clients = []
        for name, node in zip(names, cell.nodes, strict=True):
            await apis[0].account(f"{name}@localhost")
            clients.append(await Raw.logged_in(node, name))
            stack.push_async_callback(clients[-1].close)
            clients[-1].send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
            await clients[-1].until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
        alice, bob = clients
        # Over NATS, each way.
        for sender, receiver, body in ((alice, bob, "over"), (bob, alice, "back")):
            sender.send(f"<message to='{receiver.jid}' type='chat' id='{body}'><body>{body}</body></message>")
            await receiver.until(lambda e, body=body: e.tag == MESSAGE and e.findtext(CLIENT + "body") == body)
        # Over PostgreSQL: what one node keeps the other gives.
        sent = await apis[0].notify(f"{names[1]}@localhost", {"n": 1}, audience="always")
        await bob.until(lambda e: e.tag == MESSAGE and e.get("id") == sent["id"])
        # In Redis.
        assert "carillon:l:" in cell.redis.ask("KEYS", "carillon:*")


MESSAGE = CLIENT + "message"
ENGINES = {"postgres": "store.url", "nats": "cell.nats", "redis": "cell.redis"}
NAMES = {"postgres": "PostgreSQL", "nats": "NATS", "redis": "Redis"}
WRONG = [
    (engine, what)
    for engine in ENGINES
    for what in ("authority", "name", "missing", "stranger", "user")
    # Redis looks at who signed a certificate, and not at whom it is for.
    if (engine, what) != ("redis", "user")
]


async def checked(settings):
    """What `carillon config check` says, and its status."""
    done = await asyncio.to_thread(run, "config", "check", *overrides(settings))
    return done.returncode, done.stdout + done.stderr


async def test_a_node_with_all_certificates_is_let_in(cell, tmp_path):
    status, said = await checked(cell.good(tmp_path))
    assert status == 0, said


@pytest.mark.parametrize(("engine", "what"), WRONG)
async def test_the_check_names_the_engine_and_the_setting(cell, tmp_path, engine, what):
    changed, words = cell.wrong(engine, what)
    status, said = await checked(cell.good(tmp_path) | changed)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert status != 0, said
    assert len(errors) == 1, said
    assert errors[0].startswith(f"error: {ENGINES[engine]}: "), said
    assert words in errors[0], said
    assert PASSWORD not in said


@pytest.mark.parametrize(("engine", "what"), [case for case in WRONG if case[0] != "postgres" or case[1] == "missing"])
async def test_the_log_names_the_engine_and_the_setting(cell, tmp_path, engine, what):
    """A node waits for NATS and for Redis, and ends if PostgreSQL does not let it in."""
    changed, words = cell.wrong(engine, what)
    command = [str(BINARY), "serve", *overrides(cell.good(tmp_path) | changed)]
    node = await asyncio.create_subprocess_exec(
        *command,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ,
    )
    said = []
    try:
        async with asyncio.timeout(LOG_S):
            async for line in node.stdout:
                said.append(line.decode())
                if words in said[-1] and (NAMES[engine] in said[-1] or ENGINES[engine] in said[-1]):
                    break
            else:
                raise AssertionError("the node does not say it:\n" + "".join(said))
    except TimeoutError:
        raise AssertionError("the node does not say it:\n" + "".join(said)) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            node.kill()
        await node.wait()
    assert PASSWORD not in "".join(said)

"""What operators build on: metrics, dashboard, alerts, the service manager. As `docs/book/operations.md` has it."""

import asyncio
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import prometheus, store
from harness.api import Api
from harness.inbox import deadline
from harness.prometheus import Prometheus
from harness.raw import CLIENT, Raw, auth, plain
from harness.server import BINARY, ROOT, Server, unique

DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana/carillon.json"
RULES = DEPLOY / "prometheus/carillon.rules.yml"
BOOK = ROOT / "docs/book/operations.md"
UNIT = DEPLOY / "systemd/carillon.service"

pytestmark = pytest.mark.skipif(not prometheus.is_installed(), reason="Debian's prometheus is not installed")


@pytest.fixture(scope="module")
def settings():
    return {
        "event_log__enabled": "true",
        # Failed logins are not to be refused, but what is dropped for want of room is.
        "limits__profile": "benchmark",
        "limits__pending_notifications": 1,
        # An event stream is answered with 503.
        "http__streams_max": 0,
    }


class Traffic:
    """Everything that is counted, in rounds."""

    def __init__(self, server, api):
        self.server = server
        self.api = api

    async def prepare(self):
        self.alice, bob, self.topic = unique("alice"), unique("bob"), unique("topic")
        self.room = unique("room")
        for user in (self.alice, bob):
            await self.api.account(f"{user}@localhost")
        await self.api.ok("PUT", f"/v1/topics/{self.topic}", {}, status=201)
        await self.api.ok("PUT", f"/v1/rooms/{self.room}", {}, status=201)
        await self.api.ok("PUT", f"/v1/devices/{self.alice}/subscriptions/{self.topic}", status=201)
        # Present all the time: a figure per connection is one of some connections.
        self.idle = await Raw.logged_in(self.server, bob, resource="idle")

    async def round(self):
        jid = f"{self.alice}@localhost"
        alice = await Raw.logged_in(self.server, self.alice)
        await self.api.ok("POST", f"/v1/topics/{self.topic}/items", {"payload": "item"}, status=202)
        await alice.until(lambda e: e.tag == CLIENT + "message" and e.get("type") == "headline")
        sent = await self.api.notify(jid)
        await alice.until(lambda e: e.get("id") == sent["id"])
        alice.send(f"<message to='push.localhost'><received xmlns='urn:xmpp:receipts' id='{sent['id']}'/></message>")
        await alice.ping()
        await self._room(alice)
        alice.send("</stream:stream>")
        await alice.end_of_stream()
        for audience in ("connected", "always", "always"):
            await self.api.notify(jid, audience=audience)
        await self.api.problem(503, "too-many-streams", "GET", "/v1/events")
        await self._failures()

    async def _room(self, alice):
        """She enters a room, is refused something there, and is removed."""
        room = f"{self.room}@rooms.localhost"
        alice.send(f"<presence to='{room}/Alice'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
        await alice.until(lambda e: e.get("from") == room and e.get("type") == "groupchat")
        alice.send(f"<message to='{room}/nobody' type='chat'><body>?</body></message>")
        await alice.until(lambda e: e.get("from") == f"{room}/nobody" and e.get("type") == "error")
        await self.api.ok("DELETE", f"/v1/rooms/{self.room}/occupants/Alice", status=204)
        await alice.until(lambda e: e.get("from") == f"{room}/Alice" and e.get("type") == "unavailable")

    async def _failures(self):
        stranger = await Raw.secured(self.server)
        stranger.send(auth("PLAIN", plain(self.alice, "wrong")))
        await stranger.failure("not-authorized")
        stranger.send("<presence/>")
        await stranger.stream_error("not-authorized")
        await stranger.close()


@pytest.fixture
async def traffic(server, api):
    traffic = Traffic(server, api)
    await traffic.prepare()
    yield traffic
    await traffic.idle.close()


@pytest.fixture
def scraped(server, tmp_path):
    prometheus = Prometheus(tmp_path, server, RULES)
    yield prometheus
    prometheus.end()


def dashboard_queries():
    """Every expression of the dashboard, with its variables filled in as Grafana does."""
    dashboard = json.loads(DASHBOARD.read_text())
    targets = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    annotated = [(note["name"], note["expr"]) for note in dashboard["annotations"]["list"]]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            selector = re.fullmatch(r"label_values\((.+), \w+\)", variable["definition"])[1]
            targets.append((f"variable {variable['name']}", selector))
    filled = {"$__rate_interval": "30s", "$__interval": "30s", "$job": ".+", "$instance": ".+"}
    for title, expression in targets + annotated:
        for word, value in filled.items():
            expression = expression.replace(word, value)
        assert "$" not in expression, f"{title}: {expression}"
        yield title, expression


def alert_rules():
    """The alerts by name, as Prometheus has read them."""
    text = RULES.read_text()
    return dict(zip(re.findall(r"- alert: (\w+)", text), re.findall(r"runbook_url: (\S+)", text), strict=True))


def selectors(expression):
    """What an expression selects: metric names with their labels."""
    words = r"(?:(?:carillon|process)_\w+|up)(?:\{[^}]*\})?"
    return re.findall(rf"(?<![\w:]){words}(?![\w(])", expression)


async def test_every_query_of_the_dashboard_and_of_the_alerts_has_data(traffic, scraped):
    # An event that marks a restart is to be found when there was one: its metric must be there.
    wanted = {
        q: title for title, query in dashboard_queries() for q in ([query] if title != "Restarts" else selectors(query))
    }
    alerts = scraped.alerts()
    assert len(alerts) >= 15
    for alert in alerts:
        wanted |= {selector: alert["name"] for selector in selectors(alert["query"])}
    # A node that runs alone has no figures of a cell, and one without modules none of modules: test_cell_figures.py, test_modules.py.
    absent = ("carillon_cell_", "carillon_module_")
    wanted = {query: title for query, title in wanted.items() if not any(name in query for name in absent)}
    assert len(wanted) > 80
    async with deadline("data for every query", 60):
        while wanted:
            missing = ", ".join(f"{title}: {query}" for query, title in wanted.items())
            print(f"no data yet for {len(wanted)} queries: {missing}")
            await traffic.round()
            wanted = {query: title for query, title in wanted.items() if not has_data(scraped.query(query))}
    states = {rule["name"]: (rule["health"], rule.get("lastError", "")) for rule in scraped.alerts()}
    assert set(states) == set(alert_rules())
    assert not {name: state for name, state in states.items() if state[0] == "err" or state[1]}
    # What the traffic above provokes does not last long enough for an alarm.
    assert not [alert["name"] for alert in scraped.alerts() if alert["state"] == "firing"]


def has_data(samples):
    return any(not math.isnan(value) for _, value in samples)


def promtool(*arguments, input=None):
    command = ["promtool", *arguments]
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=30, check=False)


def test_the_rules_and_the_example_are_valid():
    for kind, path in (("rules", RULES), ("config", DEPLOY / "prometheus/prometheus.yml")):
        checked = promtool("check", kind, str(path))
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_its_section_in_the_book():
    headings = {heading.lower() for heading in re.findall(r"^#+ (\w+)$", BOOK.read_text(), re.MULTILINE)}
    for name, url in alert_rules().items():
        page, anchor = url.split("#")
        assert page.endswith("/docs/book/operations.md")
        assert anchor == name.lower()
        assert anchor in headings, f"{name} has no section"


async def test_the_page_is_what_prometheus_reads(traffic, api):
    await traffic.round()
    page = (await api.call("GET", "/metrics")).text
    checked = await asyncio.to_thread(promtool, "check", "metrics", input=page)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    families = {family.name: family for family in text_string_to_metric_families(page)}
    for name in ("delivery", "acknowledgement", "login", "store_commit", "http_request"):
        check_histogram(families[f"carillon_{name}_duration_seconds"])
    (build,) = families["carillon_build_info"].samples
    assert build.value == 1
    assert build.labels["version"]
    assert build.labels["rustc"].startswith("1.")
    reasons = {s.labels["reason"] for s in families["carillon_login_failures"].samples}
    assert "not-authorized" in reasons
    ended = {s.labels["reason"] for s in families["carillon_notifications_ended"].samples}
    assert {"not-connected", "queue-full"} <= ended
    assert "closed" in {s.labels["reason"] for s in families["carillon_sessions_ended"].samples}
    (open_fds,), (max_fds,) = families["process_open_fds"].samples, families["process_max_fds"].samples
    assert 10 < open_fds.value < max_fds.value


def check_histogram(family):
    """That buckets grow up to the count."""
    assert family.type == "histogram", family
    series = {}
    for sample in family.samples:
        labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
        series.setdefault(labels, []).append(sample)
    for samples in series.values():
        buckets = [s.value for s in samples if s.name.endswith("_bucket")]
        (count,) = (s.value for s in samples if s.name.endswith("_count"))
        assert buckets == sorted(buckets)
        assert buckets[-1] == count
        assert samples[len(buckets) - 1].labels["le"] == "+Inf"
    assert any(s.value > 0 for s in family.samples if s.name.endswith("_sum")), family


async def test_figures_of_domains_are_bounded(tmp_path):
    server = Server(tmp_path, http__metrics_domains=2)
    async with contextlib.aclosing(Api(server)) as api:
        for name in ("b.example", "c.example"):
            await api.ok("PUT", f"/v1/admin/domains/{name}", {}, status=201)
        for domain in ("localhost", "b.example", "c.example"):
            await api.account(f"u@{domain}")
            await api.notify(f"u@{domain}", audience="connected")

        async def ended(domain):
            return await api.figure_is(f'domain_notifications_ended_total{{domain="{domain}"}}', lambda n: n == 1)

        for label in ("localhost", "b.example", "(other)"):
            await ended(label)
        page = (await api.call("GET", "/metrics")).text
        assert 'domain="c.example"' not in page
    server.end()


@pytest.mark.parametrize("kind", ["path", "abstract"])
async def test_the_service_manager_is_told(tmp_path, kind):
    address = str(tmp_path / "notify") if kind == "path" else f"\0carillon-{tmp_path.name}-{id(tmp_path)}"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(address)
    manager.settimeout(20)

    def told():
        return dict(line.split("=", 1) for line in manager.recv(4096).decode().split("\n"))

    environment = {"NOTIFY_SOCKET": address.replace("\0", "@"), "WATCHDOG_USEC": "200000"}
    server = Server(tmp_path, environment)
    ready = told()
    assert ready["READY"] == "1"
    assert f"{server.port('c2s')} (XMPP)" in ready["STATUS"]
    assert [told() for _ in range(5)] == [{"WATCHDOG": "1"}] * 5
    server.process.send_signal(signal.SIGHUP)
    reloading = next(state for state in iter(told, None) if "WATCHDOG" not in state)
    assert reloading["RELOADING"] == "1"
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert next(state for state in iter(told, None) if "WATCHDOG" not in state)["READY"] == "1"
    server.end()
    stopping = next(state for state in iter(told, None) if "WATCHDOG" not in state)
    assert stopping["STOPPING"] == "1"
    # drain.timeout_ms, drain.spread_ms, and the time to close the store.
    assert stopping["EXTEND_TIMEOUT_USEC"] == "42000000"
    manager.close()


async def test_an_end_that_overtakes_a_reload_is_no_error(tmp_path):
    server = Server(tmp_path)

    async def until(what, wanted):
        async with deadline(what):
            while not wanted():
                await asyncio.to_thread(server.process.poll)

    def threads():
        for name in pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/comm"):
            # One may end while it is looked at.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield name.read_text().strip()

    # The policy of the domain waits to be written, until nothing is left of the node but its store.
    with store.locked(server):
        server.process.send_signal(signal.SIGHUP)
        await until("the reload", lambda: "reloaded" in server.log.read_text())
        server.process.send_signal(signal.SIGTERM)
        await until("the shards to end", lambda: not any(name.startswith("shard") for name in threads()))
    assert await asyncio.to_thread(server.process.wait, 20) == 0
    assert " ERROR " not in server.log.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_valid_and_hardened(tmp_path):
    unit = tmp_path / "carillon.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/carillon", str(BINARY)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    said = [line for line in verified.stderr.splitlines() if "carillon" in line]
    assert verified.returncode == 0, verified.stderr
    assert not said
    # systemd 250 and later: how exposed the service is, from 0 to 10; here times ten.
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-2000:] + rated.stderr


def test_the_container_is_built_as_the_repository_is():
    text = (DEPLOY / "container/Containerfile").read_text()
    (channel,) = re.findall(r'^channel = "(.+)"$', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)
    assert f"/rust:{channel}-slim-" in text
    assert f"RUSTUP_TOOLCHAIN={channel}\n" in text
    # The files of the image are those of `make image`, with the libraries that the binary was linked with.
    assert re.search(r"rust:\S+-bookworm ", text)
    assert "deploy/container/rootfs target/release/carillon /out" in text
    assert "\nFROM scratch\n" in text


@pytest.mark.skipif(shutil.which("ldd") is None or os.getuid() != 0, reason="makes a root folder, as root does")
def test_the_binary_runs_where_there_is_only_glibc(tmp_path):
    """As in the container: the binary and what it loads, another user, its folder the only one that it may write to."""
    loaded = subprocess.run(["ldd", str(BINARY)], capture_output=True, text=True, timeout=30, check=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", loaded)
    names = {library.rsplit("/", 1)[1].split(".so")[0] for library in libraries}
    # What the image has: `deploy/container/rootfs` lays out the same.
    assert names <= {"libc", "libm", "libgcc_s", "libdl", "libpthread", "librt", "ld-linux-x86-64", "ld-linux-aarch64"}
    root = tmp_path / "root"
    for path in [str(BINARY), *libraries]:
        at = root / "usr/local/bin/carillon" if path == str(BINARY) else root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, at)
    (root / "data").mkdir()
    os.chown(root / "data", 65532, 65532)
    text = (DEPLOY / "container/Containerfile").read_text()
    entrypoint = json.loads(re.search(r"^ENTRYPOINT (\[.+\])$", text, re.MULTILINE)[1])
    ports = [f"--set={name}.port=0" for name in ("c2s", "c2s_tls", "websocket", "http")]
    # pytest keeps its folders to itself.
    for parent in root.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    command = ["chroot", "--userspec=65532:65532", str(root), *entrypoint, *ports, "--ready-file=/data/ready.json"]
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(
            command, env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        for _ in range(1000):
            if (root / "data/ready.json").exists():
                break
            try:
                node.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError((tmp_path / "log").read_text())
        ports = json.loads((root / "data/ready.json").read_text())
        with urllib.request.urlopen(f"http://127.0.0.1:{ports['http']}/readyz", timeout=20) as answer:
            assert answer.read() == b"ready\n"
    finally:
        node.terminate()
        assert node.wait(timeout=20) == 0

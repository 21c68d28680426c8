"""The container image: made twice it is the same, it has no shell, and it runs under an OCI runtime."""

import json
import os
import shutil
import stat
import subprocess

import httpx
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from harness.container import Container, Image
from harness.peer import Peer
from harness.server import BINARY, END_S, ROOT, Server
from harness.upgrade import place_binary

HERE = ROOT / "deploy/container"
EPOCH = "1790000000"
BYTES_MAX = 40_000_000

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="the libraries are Debian's"),
    pytest.mark.skipif(os.getuid() != 0, reason="files of other users are unpacked"),
]


def make(folder):
    """Makes the image of the binary that is tested; its archive and what was printed."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": EPOCH}
    archive = folder / "carillon.oci.tar"
    for command in (
        [HERE / "rootfs", BINARY, folder / "rootfs"],
        [HERE / "image", folder / "rootfs", archive, "--version", "0.1.0", "--revision", "0123456", "--level", "1"],
    ):
        done = subprocess.run(
            [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    return archive, done.stdout.split()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def image(made, tmp_path_factory):
    root = tmp_path_factory.mktemp("image")
    for parent in root.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    return Image(made[0], root / "root")


@pytest.fixture
def container(image, tmp_path):
    why_not = Container.why_not()
    if why_not:
        pytest.skip(why_not)
    started = []

    def start(name, *arguments, **options):
        started.append(Container(image, tmp_path / name, arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_made_twice_it_has_the_same_digest(made, tmp_path):
    archive, printed = make(tmp_path)
    assert printed == made[1]
    assert archive.read_bytes() == made[0].read_bytes()
    assert int(printed[1]) < BYTES_MAX


def test_it_has_nothing_to_log_in_to(image):
    programs = {
        str(path.relative_to(image.root))
        for path in image.root.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & stat.S_IXUSR and ".so" not in path.name
    }
    assert programs == {"usr/local/bin/carillon"}
    privileged = [p for p in image.root.rglob("*") if not p.is_symlink() and p.is_file() and p.stat().st_mode & 0o6000]
    assert not privileged
    assert (image.root / "data").stat().st_uid == 65532
    # Who scans it learns which packages of Debian its files are from.
    packages = {path.name for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert packages == {"libc6", "libgcc-s1", "ca-certificates"}
    assert (image.root / "etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE") > 50


def test_it_says_what_it_is(image):
    assert image.name == "carillon:0.1.0"
    settings = image.config["config"]
    assert settings["User"] == "65532:65532"
    assert settings["StopSignal"] == "SIGTERM"
    assert set(settings["ExposedPorts"]) == {f"{port}/tcp" for port in (5222, 5223, 5280, 8080)}
    labels = {name.rpartition(".")[2]: value for name, value in settings["Labels"].items()}
    assert labels["version"] == "0.1.0"
    assert labels["revision"] == "0123456"
    assert labels["licenses"] == "MIT OR Apache-2.0"
    assert labels["source"].startswith("https://")


def test_what_it_is_made_of_is_listed(image):
    text = (image.root / "usr/share/doc/carillon/sbom.cdx.json").read_text()
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert wrong is None, wrong
    bill = json.loads(text)
    assert bill["metadata"]["component"]["name"] == "carillon"
    names = {component["name"] for component in bill["components"]}
    assert {"rustls", "libsqlite3-sys", "tokio-postgres", "async-nats", "libc6", "carillon-core"} <= names
    # What only tests use is not in the binary.
    assert not {"proptest", "tempfile"} & names
    known = {component["bom-ref"] for component in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    needed = {ref for edge in bill["dependencies"] for ref in edge["dependsOn"]}
    assert needed <= known
    unlicensed = [c["name"] for c in bill["components"] if c["purl"].startswith("pkg:cargo") and "licenses" not in c]
    assert not unlicensed


def test_settings_are_checked_in_it(container):
    checked = container("check", command=["/usr/local/bin/carillon", "config", "check", "--set=data_dir=/data"])
    assert checked.process.wait(END_S) == 0, checked.log.read_text()
    wrong = container("wrong", command=["/usr/local/bin/carillon", "config", "check", "--set=data_dri=/data"])
    assert wrong.process.wait(END_S) == 2, wrong.log.read_text()
    assert "data_dir" in wrong.log.read_text()


async def test_a_node_in_it_is_upgraded_and_drains(container):
    ports = [f"--set={name}.port=0" for name in ("c2s", "c2s_tls", "websocket", "http")]
    node = container("node", "--ready-file=/data/ready.json", "--set=drain.spread_ms=100ms", *ports)
    told = node.ready()
    async with httpx.AsyncClient() as http:
        assert (await http.get(f"http://127.0.0.1:{told['http']}/readyz")).text == "ready\n"
    done = node.run(
        "/usr/local/bin/carillon", "account", "create", "alice@localhost", "--password", "secret", "--data-dir=/data"
    )
    assert done.returncode == 0, done
    client = Peer(Inside(node.data, told), "alice@localhost", password="secret")
    await client.log_in()
    # The new binary comes by a volume: the root cannot be written to.
    new = node.data / "carillon-new"
    place_binary(new)
    done = node.run("/usr/local/bin/carillon", "upgrade", "--binary", "/data/carillon-new", "--data-dir=/data")
    assert done.returncode == 0, done
    assert "with 1 sessions" in done.stdout
    await client.ping()
    assert node.process.poll() is None
    node.signal("TERM")
    await client.disconnected()
    assert node.process.wait(END_S) == 0, node.log.read_text()
    assert not (node.data / "node.json").exists()


class Inside(Server):
    """What a client needs to know of the node in a container."""

    def __init__(self, data, ports):
        self.data, self.ports = data, ports

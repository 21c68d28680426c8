"""The packages as their own tools build them, and the book's page with nothing but these."""

import re
import sys
import tarfile
import tomllib
import zipfile

import pytest

from harness.server import ROOT

SDK = ROOT / "sdk"
FOLDERS = ["python", "typescript", "go", "device-typescript", "match-typescript"]
NODE = ["typescript", "device-typescript", "match-typescript"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a notification is whose trace is read at once.
STATES = ("stored", "sent", "acknowledged")
# A program that uses the types, without looking the other way in those of a package.
CONSUMER = """
import { Client, type NotificationView } from "@carillon-im/sender";
import { Device, type Notification } from "@carillon-im/device";
import { Match, type MatchError } from "@carillon-im/match";

const states: NotificationView["state"][] = [];
const device = new Device({ jid: "a@b", url: "wss://b/", onNotification: (one: Notification) => void states.push("sent") });
export const client: Client = new Client({ url: "http://b", key: "", retry: { attempts: 1 } });
// @ts-expect-error: there is no such member.
void client.send("alice", { titel: 1 });
void device.connect();
export const match: Match = new Match({ url: "ws://b/", token: "", onError: (error: MatchError) => void error.code });
"""


def blocks(language, page="docs/book/sdks.md"):
    return [text for found, text in BLOCK.findall((ROOT / page).read_text()) if found == language]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel, installed alone."""
    return tmp_path_factory.mktemp("wheel")


def test_python(program, wheel):
    program(sys.executable, "-m", "build", "--no-isolation", "--outdir", wheel, ".", cwd=SDK / "python")
    (built,) = wheel.glob("*.whl")
    names = zipfile.ZipFile(built).namelist()
    assert "carillon_sender/py.typed" in names
    assert sum(name.rpartition("/")[2] in ("LICENSE-MIT", "LICENSE-APACHE") for name in names) == 2
    (source,) = wheel.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        assert any(name.endswith("/README.md") for name in packed.getnames())
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", wheel / "installed", built]
    program(sys.executable, *install, cwd=wheel)
    program(sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "src", cwd=SDK / "python")
    (text,) = blocks("python")
    alone = {"PYTHONPATH": str(wheel / "installed")}
    said = program(sys.executable, "-W", "error", "-c", text, cwd=wheel, more=alone)
    assert "'state': 'acknowledged'" in said
    assert "published" in said
    readme = blocks("python", "sdk/python/README.md")[0]
    assert program(sys.executable, "-W", "error", "-c", readme, cwd=wheel, more=alone).strip() in STATES


def test_typescript(built, program, tmp_path):
    for folder in NODE:
        program("npm", "pack", "--silent", "--workspace", folder, "--pack-destination", tmp_path, cwd=SDK)
    modules = tmp_path / "node_modules"
    (modules / "@carillon-im").mkdir(parents=True)
    for archive in tmp_path.glob("*.tgz"):
        with tarfile.open(archive) as packed:
            names = packed.getnames()
            assert {"package/LICENSE-MIT", "package/LICENSE-APACHE", "package/README.md"} <= set(names)
            assert "package/dist/index.d.ts" in names
            packed.extractall(tmp_path / archive.stem, filter="data")
        name = next(name for name in ("device", "match", "sender") if name in archive.stem)
        (tmp_path / archive.stem / "package").rename(modules / "@carillon-im" / name)
    # What the packages depend on, and what the page names.
    for name in ("@xmpp", "saslmechanisms", "ltx", "ws", "koa-compose", "saxes", "xmlchars"):
        if (SDK / "node_modules" / name).exists():
            (modules / name).symlink_to(SDK / "node_modules" / name)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "consumer.ts").write_text(CONSUMER)
    options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", ""]
    program("node", SDK / "node_modules/typescript/bin/tsc", *options, "consumer.ts", cwd=tmp_path)
    sender, device = blocks("js")
    (tmp_path / "sender.mjs").write_text(sender)
    (tmp_path / "device.mjs").write_text(device)
    assert "acknowledged" in program("node", "sender.mjs", cwd=tmp_path)
    (tmp_path / "readme.mjs").write_text(blocks("js", "sdk/typescript/README.md")[0])
    assert program("node", "readme.mjs", cwd=tmp_path).strip() in STATES
    (match,) = blocks("js", "docs/book/matches.md")
    given = 'globalThis.WebSocket ??= (await import("ws")).WebSocket;\n'
    (tmp_path / "match.mjs").write_text(given + match)
    said = program("node", "match.mjs", cwd=tmp_path).splitlines()
    assert sorted(line.split()[0] for line in said) == ["alice", "bob"]
    assert {line.split(" ", 1)[1] for line in said} <= {"finished seat 0 won", "finished seat 1 won"}
    # A topic's last item is given to whoever subscribes.
    assert "news { headline: 'Carillon rings' }" in program("node", "device.mjs", cwd=tmp_path)


def test_go(program, tmp_path):
    (text,) = blocks("go")
    (tmp_path / "main.go").write_text(text)
    path = "github.com/carillon-im/carillon/sdk/go"
    (tmp_path / "go.mod").write_text(
        f"module book\n\ngo 1.24\n\nrequire {path} v0.0.0\n\nreplace {path} => {SDK / 'go'}\n"
    )
    assert program("gofmt", "-l", ".", cwd=tmp_path) == ""
    assert program("go", "run", ".", cwd=tmp_path).strip() in STATES


def test_all_have_the_version_and_the_licences_of_the_node():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    said = {
        "python": f'__version__ = "{version}"' in (SDK / "python/src/carillon_sender/__init__.py").read_text(),
        "go": f'const Version = "{version}"' in (SDK / "go/doc.go").read_text(),
        **{name: f'"version": "{version}"' in (SDK / name / "package.json").read_text() for name in NODE},
    }
    assert all(said.values()), said
    for folder in FOLDERS:
        for name in ("LICENSE-MIT", "LICENSE-APACHE"):
            assert (SDK / folder / name).read_bytes() == (ROOT / name).read_bytes()

"""The quickstart's blocks, executed exactly as they stand in the page."""

import asyncio
import os
import re
import shutil
import sys

import pytest

from harness.inbox import deadline
from harness.server import ROOT, unique

PAGE = ROOT / "docs/book/quickstart-senders.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    "sh": (["bash", "-eu"], "quickstart.sh"),
    "python": ([sys.executable, "-W", "error"], "quickstart.py"),
    "js": (["node"], "quickstart.mjs"),
}
# How often a notification is sent while a program runs: each program ends with the first event it sees.
PAUSE_S = 0.2


def blocks():
    """The page's blocks by language, in their order."""
    found = {}
    for language, text in BLOCK.findall(PAGE.read_text()):
        found.setdefault(language, []).append(text)
    return found


def test_every_block_is_run():
    assert set(blocks()) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_quickstart(language, server, api, peer, keys, tmp_path):
    command, name = LANGUAGES[language]
    assert shutil.which(command[0]), f"{command[0]} is not installed"
    jid = "alice@localhost"
    if jid not in [account["jid"] for account in (await api.ok("GET", "/v1/admin/accounts"))["accounts"]]:
        await api.account(jid)
    # A device that acknowledges.
    device = await peer(jid)
    key = await keys("send", "topics")
    script = tmp_path / name
    script.write_text("\n".join(blocks()[language]))
    environment = {**os.environ, "CARILLON_URL": server.http, "CARILLON_KEY": key.key, "NO_PROXY": "*"}
    async with deadline(f"the end of the {language} quickstart", seconds=60):
        process = await asyncio.create_subprocess_exec(
            *command,
            str(script),
            cwd=tmp_path,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = asyncio.create_task(process.communicate())
        try:
            while not (await asyncio.wait({output}, timeout=PAUSE_S))[0]:
                await api.notify(jid, {"n": unique("n")})
        finally:
            if process.returncode is None:
                process.kill()
        text = (await output)[0].decode()
    assert process.returncode == 0, text
    assert "acknowledged" in text, text
    shipped = await device.messages.take(lambda m: "Your order has shipped" in "".join(m.itertext()), "the order")
    assert shipped.get("type") == "headline"
    items = await api.ok("GET", "/v1/topics/news/items")
    assert items["items"][0]["payload"] == {"headline": "Carillon rings"}

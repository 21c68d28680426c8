"""`carillon demo --cell`: the story that it tells is what happens, and it leaves nothing behind."""

import os
import pathlib
import re
import tempfile

from harness.program import Program

# It starts two engines and three nodes, and waits for the burial of one.
STORY_S = 120


async def test_the_story_of_a_cell():
    before = set(pathlib.Path(tempfile.gettempdir()).glob("carillon-cell-*"))
    demo = await Program.open("demo", "--cell")
    try:
        await demo.line("Ctrl-C ends the demo", seconds=STORY_S)
        lines = demo.lines.left()
        text = "\n".join(lines)
        assert sum(line.startswith("  node") and "XMPP on" in line for line in lines) == 3
        assert text.count("all 9 devices on") == 2, text
        # Every device that had to do with the node came back, by one that lives.
        saw = [
            line for line in lines if re.match(r"  device\d@localhost +(connected to it|at home on it|neither)", line)
        ]
        assert len(saw) == 9, text
        for line in saw:
            is_hit = "to it" in line or "on it" in line
            assert ("has a session by node1" in line or "has a session by node2" in line) or not is_hit, line
        assert any("noticed nothing" in line for line in saw) or all("it" in line for line in saw)
        assert re.search(r"node3 is dead after [0-9.]+ m?s, as neither", text), text
        assert "it has its share of the names again" in text
        pids = [int(pid) for pid in re.findall(r"kill -9 (\d+)", text)]
        assert len(pids) == 2
        assert demo.errors == []
        assert await demo.interrupt() == 0
        # Nothing is left: neither processes nor the folder.
        assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids)
        assert set(pathlib.Path(tempfile.gettempdir()).glob("carillon-cell-*")) <= before
    finally:
        await demo.close()


async def test_what_is_missing_is_said(tmp_path):
    shell = tmp_path / "sh"
    shell.symlink_to("/bin/sh")
    demo = await Program.open("demo", "--cell", environment={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)})
    try:
        assert await demo.ended() == 1
        (error,) = demo.errors
        assert error.startswith("carillon demo: there is no nats-server in PATH")
        assert "apt install nats-server" in error
        assert os.listdir(tmp_path) == ["sh"]
    finally:
        await demo.close()

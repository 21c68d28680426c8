"""The page of the autoscaler: its tables are what the simulator prints, its pictures what it draws, and its commands run as they stand."""

import asyncio
import json
import os
import re
import subprocess

from harness.program import Program
from harness.server import BINARY, ROOT, run
from harness.transcript import blocks

PAGE = ROOT / "docs/book/autoscaler.md"
PICTURES = ROOT / "docs/pictures"
POLICIES = ["consumed-5", "consumed-2", "consumed-1", "requests-1", "demand"]


def test_the_table_is_what_the_simulator_prints():
    rows = json.loads(run("autoscale", "simulate", "--target", "30..80", "--json").stdout)
    cell = {(row["shape"], row["policy"], row["target"]): row for row in rows}
    for shape in ("bell", "top-heavy"):
        for policy in POLICIES:
            cells = [cell[shape, policy, target] for target in range(30, 90, 10)]
            shown = " | ".join(f"{c['success_percent']:.1f} / {c['unit_hours']:.0f}" for c in cells)
            assert f"| {shape}, {policy} | {shown} |" in PAGE.read_text()


def test_the_pictures_are_what_the_simulator_draws(tmp_path):
    done = run("autoscale", "simulate", "--shape", "top-heavy", "--target", "80", "--svg", str(tmp_path))
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"\]\(\.\./pictures/(top-heavy\S+\.svg)\)", PAGE.read_text())
    assert len(shown) == 2
    for name in shown:
        assert (tmp_path / name).read_bytes() == (PICTURES / name).read_bytes(), name


async def test_its_commands_run_as_they_stand(tmp_path, server):
    """With the files that it shows; the run ends by itself, after one decision in which the edges are not there yet."""
    settings, lease = blocks(PAGE, "toml")
    (tmp_path / "autoscaler.toml").write_text(settings)
    edges = tmp_path / "edges"
    edges.write_text("#!/bin/sh\necho '[]'\n")
    edges.chmod(0o755)
    commands = blocks(PAGE, "sh")
    assert len(commands) == 7
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "carillon").symlink_to(BINARY)
    environment = {"PATH": f"{bin}:{os.environ['PATH']}"}
    shown = ""
    # Only what names the node of the page is another here.
    (tmp_path / "leased.toml").write_text(
        settings.replace("decisions", "leased") + lease.replace("http://127.0.0.1:8080", server.http)
    )
    (tmp_path / "admin.key").write_text(server.key)
    scaler = await Program.shell("carillon autoscale run --apply --config leased.toml", tmp_path, environment)
    try:
        await scaler.line("(done)")
        for command in commands:
            command = command.replace("autoscale run", "autoscale run --decisions 1")
            command = command.replace("autoscale status", f"autoscale status --data-dir {server.data}")
            done = await asyncio.to_thread(
                subprocess.run,
                ["bash", "-euc", command],
                cwd=tmp_path,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()
            shown += done.stdout
    finally:
        assert await scaler.interrupt() == 0
    assert re.search(r"^autoscale .*the minimum asks for more \(done\)", shown, re.M), shown
    assert (tmp_path / "spike.html").read_text().startswith("<!doctype html>")
    (decision,) = map(json.loads, (tmp_path / "decisions.ndjson").read_text().splitlines())
    assert (decision["action"], decision["units"], decision["outcome"]) == ("up", 2, "dry-run")
    assert (decision["min"], decision["max"], decision["effect_ms"]) == (2, 20, 60_000)

"""bench/results makes its tables of runs that went well, and says which did not."""

import json
import subprocess
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "bench/results"


def report(status, memory_kib, **more):
    server = {"memoryBytesPerConnection": memory_kib * 1024}
    phases = [{"name": "settle", "counts": {}, "metrics": {}, "server": server}]
    return {"status": status, "startedAt": "2026-11-27T00:00:00Z", "players": 10, "phases": phases, **more}


def test_a_run_that_failed_is_in_no_table_and_is_named(tmp_path):
    folder = tmp_path / "compare/carillon"
    folder.mkdir(parents=True)
    rounds = [
        report("completed", 1.0),
        report("failed", 9.0, errors={"2 deliveries are missing": 2}, notes=["slow"]),
        report("completed", 2.0),
    ]
    for number, made in enumerate(rounds, 1):
        (folder / f"idle.{number}.json").write_text(json.dumps(made))
    page = tmp_path / "RESULTS.md"
    subprocess.run([RESULTS, tmp_path / "compare", page], check=True, capture_output=True)
    text = page.read_text()
    assert "| P1 | memory of an idle session, user space | KiB | **1.50** |" in text
    assert "medians of 2 rounds" in text
    assert "- `carillon/idle.2`: 2 deliveries are missing" in text

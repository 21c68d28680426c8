"""Matches over TLS and over QUIC on a network that is slow and loses packets: `bench/lossy/run.py [FOLDER]`, as root.

The node and the players are in two network namespaces (`network.py`); each transport plays the same matches. What `carillon load` reports is in
FOLDER. `MATCHES`, `SECONDS`, `DELAY_MS` (one way), `LOSS` and `SHARDS` in the environment change the defaults.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARILLON = os.environ.get("CARILLON", ROOT / "target/release/carillon")
MATCHES = int(os.environ.get("MATCHES", "25"))
SECONDS = int(os.environ.get("SECONDS", "60"))
DELAY_MS = float(os.environ.get("DELAY_MS", "20"))
LOSS = float(os.environ.get("LOSS", "0.02"))
SHARDS = int(os.environ.get("SHARDS", "1"))
FAR = "10.99.0.2"


def inside(name, *command):
    return ["ip", "netns", "exec", name, *map(str, command)]


def node(folder):
    ready = folder / "ready.json"
    settings = {
        "data_dir": folder / "data",
        "listen.address": FAR,
        "http.address": FAR,
        "matches.quic_port": 5224,
        "shards": SHARDS,
        "limits.connections_per_address": 0,
        "log.level": "warn",
    }
    command = inside("lossy-far", CARILLON, "serve", "--ready-file", ready)
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    process = subprocess.Popen(command, cwd=folder)
    while not ready.exists():
        if process.poll() is not None:
            sys.exit("the node did not start")
        time.sleep(0.1)
    return process, (folder / "data/admin.key").read_text().strip(), json.loads(ready.read_text())


def play(transport, port, http, key, folder):
    report = folder / f"{transport}.json"
    command = inside("lossy-near", CARILLON, "load", "run", "match", "--target", f"{FAR}:{port}")
    command += ["--transport", transport, "--domain", "localhost", "--password", "x", "--key", key]
    command += ["--http", f"http://{FAR}:{http}", "--json", str(report)]
    ahead = 1 + -int(-(2 * DELAY_MS + 20) // (1000 / 15))
    settings = {"players.count": MATCHES * 4, "play.for": f'"{SECONDS}s"', "play.ahead": ahead, "play.cut_share": 0.0}
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    subprocess.run(command, check=False)
    return json.loads(report.read_text())


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="lossy-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    network = subprocess.Popen(
        [sys.executable, pathlib.Path(__file__).with_name("network.py"), str(DELAY_MS), str(LOSS), "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert network.stdout.readline() == "ready\n"
    process, key, ports = node(folder)
    try:
        for transport, port in (("tls", ports["c2s_tls"]), ("quic", ports["quic"])):
            play(transport, port, ports["http"], key, folder)
    finally:
        process.terminate()
        process.wait()
        network.stdin.close()
        print(network.stdout.read().strip())
        network.wait()
    print(f"the reports are in {folder}")


if __name__ == "__main__":
    main()

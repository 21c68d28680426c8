"""Edges as the autoscaler's driver `exec` has them: real nodes on loopback, each with a copy of the data of the first.

python edges.py FOLDER list|start|drain|stop
"""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import urllib.request

BINARY = os.environ.get("CARILLON", "carillon")
SETTINGS = json.loads(os.environ.get("EDGE_SETTINGS", "{}"))


def main():
    folder, verb = pathlib.Path(sys.argv[1]), sys.argv[2]
    {"list": listing, "start": start, "drain": drain, "stop": stop}[verb](folder)


def edges(folder):
    """The edges that there are, the oldest first."""
    files = sorted(folder.glob("edge-*/edge.json"))
    return [json.loads(file.read_text()) for file in files]


def write(folder, edge):
    file = folder / edge["id"] / "edge.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps(edge))
    new.replace(file)


def listing(folder):
    print(json.dumps(edges(folder)))


def start(folder):
    number = len(list(folder.glob("edge-*")))
    name = f"edge-{number:03}"
    home = folder / name
    home.mkdir()
    if (folder / "template").exists():
        shutil.copytree(folder / "template", home / "data")
    ready = home / "ready.json"
    command = [BINARY, "serve", "--ready-file", str(ready)]
    ports = {"c2s.port": 0, "c2s_tls.port": 0, "websocket.port": 0, "http.port": 0, "shards": 1}
    for key, value in (ports | {"data_dir": home / "data"} | SETTINGS).items():
        command += ["--set", f"{key}={value}"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    while not ready.exists():
        try:
            code = process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        sys.exit(f"{name} ended with {code}: {(home / 'log').read_text()}")
    at = json.loads(ready.read_text())
    edge = {
        "id": name,
        "url": f"http://127.0.0.1:{at['http']}",
        "port": at["c2s"],
        "pid": process.pid,
        "state": "running",
    }
    write(folder, edge)


def named(folder):
    return next(edge for edge in edges(folder) if edge["id"] == os.environ["EDGE_ID"])


def figures(edge):
    """What an edge itself counted: logins, those that failed, and connections that it turned away."""
    with urllib.request.urlopen(f"{edge['url']}/metrics", timeout=10) as page:
        lines = [line.rsplit(" ", 1) for line in page.read().decode().splitlines() if not line.startswith("#")]

    def total(name):
        return sum(float(value) for key, value in lines if key.split("{")[0] == name)

    names = {"logins": "logins", "failed": "login_failures", "refused": "connections_refused"}
    return {key: total(f"carillon_{name}_total") for key, name in names.items()}


def drain(folder):
    edge = named(folder)
    # Clients are sent elsewhere from now on.
    write(folder, edge | {"state": "draining"})
    data = folder / edge["id"] / "data"
    command = [BINARY, "drain", "--url", os.environ["EDGE_URL"], "--data-dir", str(data), "--over", "1s"]
    subprocess.run(command, check=True)


def stop(folder):
    edge = named(folder)
    write(folder, edge | {"figures": figures(edge)})
    descriptor = os.pidfd_open(edge["pid"])
    os.kill(edge["pid"], signal.SIGTERM)
    # It is no child of this process: the descriptor can be read when it has ended.
    assert select.select([descriptor], [], [], 30)[0], f"{edge['id']} does not end"
    (folder / edge["id"] / "edge.json").rename(folder / edge["id"] / "stopped.json")


if __name__ == "__main__":
    main()

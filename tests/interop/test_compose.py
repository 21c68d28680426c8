"""The Compose file of a cell, held against what it is about: no container engine is needed, and none is tried."""

import json
import re

import yaml

from harness.server import ROOT, run

FILE = ROOT / "deploy/compose/compose.yml"
CONTAINER = (ROOT / "deploy/container/Containerfile").read_text()
NODES = ["node1", "node2", "node3"]
PREFIX = "CARILLON_"


def compose():
    return yaml.safe_load(FILE.read_text())


def settings(name):
    """What a node says of the settings that it is given, and from where it has them."""
    environment = {
        key: value for key, value in compose()["services"][name]["environment"].items() if key.startswith(PREFIX)
    }
    shown = run("config", "explain", "--json", environment=environment)
    assert shown.returncode == 0, shown.stderr
    seen = {row["key"]: row for row in json.loads(shown.stdout)}
    return {key: row for key, row in seen.items() if "CARILLON_" in row["from"]}, environment


def test_every_variable_is_a_setting_and_together_they_are_valid():
    names = set()
    for name in NODES:
        taken, environment = settings(name)
        assert len(taken) == len(environment)
        assert taken["store.url"]["value"] == "postgresql://carillon@postgres:5432/carillon?sslmode=disable"
        assert taken["cell.nats"]["value"] == "nats://nats:4222"
        assert taken["cell.redis"]["value"] == "redis://redis:6379"
        names.add(taken["node.name"]["value"])
    assert names == set(NODES), "who starts under a name buries who had it before"


def test_what_is_named_is_there():
    file = compose()
    services = file["services"]
    assert set(services) == {"postgres", "nats", "redis", *NODES}
    for name in NODES:
        node = services[name]
        # The hosts of the engines, and what is waited for.
        assert set(node["depends_on"]) == {"postgres", "nats", "redis"}
        assert node["secrets"] == ["cell"]
        assert node["environment"]["CARILLON_CELL_SECRET_FILE"] == "/run/secrets/cell"
        assert [volume.split(":")[0] for volume in node["volumes"]] == [name]
        assert name in file["volumes"]
        assert (FILE.parent / node["build"]["context"]).resolve() == ROOT
        assert (ROOT / node["build"]["dockerfile"]).is_file()
        exposed = re.search(r"^EXPOSE (.+)$", CONTAINER, re.MULTILINE)[1].split()
        assert {port.rsplit(":", 1)[1] for port in node["ports"]} <= set(exposed)
        # Nobody but this machine reaches them.
        assert all(port.startswith("127.0.0.1:") for port in node["ports"])
    published = [port for name in NODES for port in services[name]["ports"]]
    outside = [port.split(":")[1] for port in published]
    assert len(set(outside)) == len(outside)
    assert services["postgres"]["environment"]["POSTGRES_USER"] == "carillon"
    assert set(file["secrets"]) == {"cell"}
    for image in (services[engine]["image"] for engine in ("postgres", "nats", "redis")):
        assert re.fullmatch(r"docker\.io/library/[a-z]+:\d+(\.\d+)?", image), "a version, not the newest of the day"


def test_nodes_are_given_as_long_as_they_take_to_end():
    shown = {row["key"]: row["value"] for row in json.loads(run("config", "explain", "--json").stdout)}
    needed = sum(shown[f"drain.{part}_ms"] for part in ("delay", "spread", "timeout"))
    for name in NODES:
        assert int(compose()["services"][name]["stop_grace_period"].removesuffix("s")) * 1000 > needed


def test_the_features_of_the_image_are_those_that_a_cell_needs():
    features = re.search(r"--features (\S+)", CONTAINER).group(1).split(",")
    manifest = (ROOT / "crates/carillon/Cargo.toml").read_text()
    for feature in features:
        assert re.search(rf"^{feature} = \[", manifest, re.MULTILINE), feature
    assert {"nats", "postgres", "redis"} <= set(features)

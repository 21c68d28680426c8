"""The Helm chart: valid for several versions of Kubernetes, and its pods, run as processes, serve."""

import os
import re
import time

import kubernetes_validate
import pytest

from harness.api import Api
from harness.chart import CHART, Pod, faults, find, helm, render, tool
from harness.nats import Nats
from harness.peer import Peer
from harness.postgres import Postgres
from harness.server import ROOT

PROFILES = [f"--values={CHART}/profiles/{name}.yaml" for name in ("node", "cell", "trial")]
VERSIONS = ["1.25", "1.28", "1.31", "1.34", "1.37"]
EVERYTHING = [
    "--set=monitor.enabled=true,monitor.keySecret.name=key,rules.enabled=true,dashboard.enabled=true",
    "--set=autoscaler.enabled=true,autoscaler.apply=true,autoscaler.source.kind=prometheus",
    "--set=autoscaler.source.url=http://prometheus:9090,autoscaler.source.demand=up,autoscaler.source.per_unit=1",
    "--set=tls.secretName=tls,cell.credentialsSecret.name=nats,image.pullSecrets[0].name=pull",
]
# Of operators that a cluster may have: no part of Kubernetes, and no schema of them is here.
CUSTOM = {"ServiceMonitor", "PrometheusRule"}

pytestmark = pytest.mark.skipif(tool("helm") is None, reason="helm is not installed: tests/interop/setup builds it")
as_processes = pytest.mark.skipif(os.getuid() != 0, reason="pods have roots and users of their own")


@pytest.mark.parametrize("profile", PROFILES)
def test_it_is_linted(profile):
    helm("lint", "--strict", CHART, profile)


@pytest.mark.parametrize("more", [[], EVERYTHING], ids=["plain", "everything"])
@pytest.mark.parametrize("profile", PROFILES)
def test_what_it_renders_is_valid(profile, more):
    objects = render(profile, *more)
    kinds = [o["kind"] for o in objects]
    assert {"StatefulSet", "Service", "ConfigMap", "NetworkPolicy"} <= set(kinds)
    names = [(o["kind"], o["metadata"]["name"]) for o in objects]
    assert len(names) == len(set(names))
    for version in VERSIONS:
        for each in objects:
            if each["kind"] not in CUSTOM:
                kubernetes_validate.validate(each, version, strict=True)


def test_what_cannot_work_is_refused():
    for setting, why in (
        ("groups.node.replicas=2", "several pods are a cell"),
        ("cell.nats=nats://n:4222,store.url=postgresql://a@b/c", "a cell needs cell.secret.name"),
        ("autoscaler.enabled=true", "the autoscaler needs autoscaler.source"),
        ("groups.node.replica=3", "additional properties 'replica' not allowed"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
    ):
        assert why in helm("template", "carillon", CHART, "--set", setting, fails=True), setting


def test_pods_have_no_rights_that_they_do_not_need():
    objects = render(PROFILES[1], *EVERYTHING)
    [rule] = find(objects, "Role")["rules"]
    assert rule == {
        "apiGroups": ["apps"],
        "resources": ["statefulsets/scale"],
        "resourceNames": ["carillon-node"],
        "verbs": ["get", "patch"],
    }
    # Whoever is scaled is not told a number at each upgrade of the release.
    assert "replicas" not in find(objects, "StatefulSet")["spec"]
    for kind in ("StatefulSet", "Deployment"):
        spec = find(objects, kind)["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is (kind == "Deployment")
        assert spec["securityContext"]["runAsNonRoot"]
        [container] = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    # No secret is in a ConfigMap or in a variable.
    assert not [o for o in objects if o["kind"] == "Secret"]
    budget, policy = find(objects, "PodDisruptionBudget"), find(objects, "NetworkPolicy")
    assert budget["spec"]["maxUnavailable"] == 1
    assert [len(rule.get("from", [])) for rule in policy["spec"]["ingress"]] == [0, 1]


def test_its_version_is_that_of_the_release():
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    chart = (CHART / "Chart.yaml").read_text()
    assert f"\nversion: {version}\n" in chart
    assert f'\nappVersion: "{version}"\n' in chart


@pytest.fixture
def pods(tmp_path):
    """Starts the pods of the StatefulSet of a release, one when the one before is ready."""
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    started = []

    def pods(objects, **options):
        statefulset = find(objects, "StatefulSet")
        for ordinal in range(statefulset["spec"]["replicas"]):
            try:
                started.append(Pod(tmp_path, objects, statefulset, ordinal, **options))
            except OSError as why:
                pytest.skip(str(why))
            started[-1].start()
            started[-1].wait_until_ready()
        return started

    yield pods
    for pod in started:
        pod.close()


@pytest.fixture
def engines():
    nats, postgres = Nats(), Postgres()
    # The pods' user comes to the socket.
    postgres.folder.chmod(0o711)
    yield nats, postgres
    nats.end()
    postgres.end()


async def connect(pod, jid):
    peer = Peer(pod, jid, tls=pod.tls())
    peer._address = (pod.address, pod.port("xmpp"))
    await peer.log_in()
    return peer


@as_processes
async def test_the_pod_of_a_single_node_serves(pods):
    settings = ['--set-json=settings={"limits.stanza_bytes": 300000, "archive.enabled": true}']
    [pod] = pods(render(PROFILES[0], "--set=domain=localhost,drain.seconds=1", *settings))
    assert pod.probe("startupProbe")
    assert pod.probe("livenessProbe")
    told = pod.machine.ok(
        "/usr/local/bin/carillon", "config", "explain", "limits.stanza_bytes", "--config", "/etc/carillon/carillon.toml"
    )
    assert "300000" in told, told
    api = Api(pod)
    await api.account("alice@localhost")
    alice = await connect(pod, "alice@localhost")
    sent = await api.notify("alice@localhost", "hello")
    await alice.notification(sent["id"])
    await api.aclose()
    await alice.close()
    pod.stop()
    assert not faults(pod)


@as_processes
@pytest.mark.timeout(240)
async def test_a_cell_of_three_comes_up_and_is_restarted_pod_by_pod(pods, engines):
    nats, postgres = engines
    url = postgres.database()
    began = time.monotonic()
    objects = render(
        PROFILES[1], "--set=domain=localhost,drain.seconds=1", f"--set=store.url={url},cell.nats={nats.url}"
    )
    secrets = {"carillon-cell": {"cell.secret": os.urandom(32)}, "carillon-store": {"password": b"secret"}}
    cell = pods(objects, secrets=secrets, shared=[postgres.folder])
    took = time.monotonic() - began
    print(f"three pods serve {took:.1f} s after helm template began")
    assert took < 60
    apis = [Api(pod) for pod in cell]
    await apis[0].account("alice@localhost")
    await apis[1].account("bob@localhost")
    # From one pod to a client at another.
    alice = await connect(cell[0], "alice@localhost")
    sent = await apis[2].notify("alice@localhost", "hello")
    await alice.notification(sent["id"])
    await alice.close()
    # As a StatefulSet is updated: the last pod first, the next one when it is ready. Senders use the others.
    kept = []
    for ordinal in reversed(range(len(cell))):
        cell[ordinal].stop()
        for other in (each for n, each in enumerate(cell) if n != ordinal):
            assert other.probe("readinessProbe"), other.log.read_text()
        kept.append((await apis[ordinal - 1].notify("bob@localhost", f"kept {ordinal}"))["id"])
        cell[ordinal].start()
        cell[ordinal].wait_until_ready()
    bob = await connect(cell[1], "bob@localhost")
    for notification in kept:
        await bob.notification(notification)
    await bob.close()
    for api in apis:
        await api.aclose()
    assert not [fault for pod in cell for fault in faults(pod)]

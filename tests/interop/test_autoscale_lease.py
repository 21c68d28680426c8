"""Of several scalers one is active: a lease that a node keeps."""

import asyncio
import datetime
import os
import urllib.error

import pytest

from harness.autoscale import KEDA, POLICY, Demand, Scaler, by_exec, call, edges_in, page, said_to_keda
from harness.inbox import deadline
from harness.server import run


@pytest.fixture
def edges(tmp_path):
    return edges_in(tmp_path / "edges")


def test_of_two_scalers_one_is_active(tmp_path, server):
    """The second goes on measuring, and takes over once the first has given up its lease."""
    key = server.data / "admin.key"
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{key}"\n'
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with Demand(7.0) as demand:
        scalers = [Scaler(folder, page(demand), KEDA, POLICY + lease) for folder in (first, second)]
        held = 'holder = "somebody"\n[source]'
        scalers[0].file.write_text(scalers[0].file.read_text().replace("[source]", held))
        path = "/v1/admin/leases/autoscale"
        taken = call(server, "POST", path, {"holder": "somebody", "ttl_ms": 60000})
        assert taken["holder"] == "somebody"
        assert scalers[1].run(1, "--apply").returncode == 0
        refused = scalers[1].decisions()[-1]["outcome"]["refused"]
        assert refused.startswith("another scaler is active: `somebody` holds it until ")
        # The one who holds it may act, and gives it up at its end.
        assert scalers[0].run(1, "--apply").returncode == 0
        assert scalers[0].decisions()[-1]["outcome"] == "done"
        assert scalers[1].run(1, "--apply").returncode == 0
        assert scalers[1].decisions()[-1]["outcome"] == "done"


async def test_a_second_scaler_is_active_once_the_lease_of_one_that_was_killed_is_over(tmp_path, server):
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{server.data}/admin.key"\nname = "killed"\n'
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with Demand(7.0) as demand:
        first, second = (Scaler(folder, page(demand), KEDA, POLICY + lease) for folder in folders)
        active = await first.start("--apply")
        try:
            await active.line("(done)")
            waiting = await second.start("--apply")
            try:
                await waiting.line("another scaler is active")
                active.process.kill()
                await active.process.wait()
                await waiting.line("(done)")
            finally:
                assert await waiting.interrupt() == 0
        finally:
            await active.close()
    killed_at = first.decisions()[-1]["at"]
    outcomes = [(line["at"], line["outcome"]) for line in second.decisions()]
    first_done = next(at for at, outcome in outcomes if outcome == "done")
    assert first_done > killed_at
    # Until then nothing was done twice.
    assert all("refused" in outcome for at, outcome in outcomes if at < first_done)


async def test_a_lease_is_held_while_an_edge_starts(tmp_path, edges, server):
    """Starting may take longer than a lease lasts: meanwhile it stays this scaler's."""
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{server.data}/admin.key"\nname = "starting"\n'
    (edges / "edge-0").touch()
    os.mkfifo(edges / "start-gate")
    gate = os.open(edges / "start-gate", os.O_RDWR)

    def said():
        return (edges / "said").read_text() if (edges / "said").exists() else ""

    async def held():
        lease = await asyncio.to_thread(call, server, "GET", "/v1/admin/leases/starting", None)
        return datetime.datetime.fromisoformat(lease["until"])

    with Demand(2.0) as demand:
        settings = Scaler(tmp_path, page(demand), by_exec(edges), POLICY + lease)
        scaler = await settings.start("--apply")
        try:
            async with deadline("an edge that is starting"):
                while "start " not in await asyncio.to_thread(said):
                    pass
            # It lasts a second, and is still held when two have passed.
            began = await held()
            async with deadline("a lease that is renewed"):
                while (await held() - began).total_seconds() < 2:
                    pass
            assert [path.name for path in edges.glob("edge-*")] == ["edge-0"]
            (edges / "start-gate").unlink()
            os.close(gate)
            await scaler.line("(done)")
        finally:
            assert await scaler.interrupt() == 0
    assert len(list(edges.glob("edge-*"))) == 3


async def test_a_scaler_that_is_told_to_end_gives_its_lease_up(tmp_path, server):
    key = server.data / "admin.key"
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{key}"\nname = "ended"\n'
    # It decides once, and waits for the next decision when it is told to end.
    policy = POLICY.replace('"200ms"', '"10m"').replace('"1s"', '"10m"')
    with Demand(7.0) as demand:
        settings = Scaler(tmp_path, page(demand), KEDA, policy + lease)
        scaler = await settings.start("--apply")
        decided = await scaler.line("units")
        with pytest.raises(urllib.error.HTTPError, match="409"):
            call(server, "POST", "/v1/admin/leases/ended", {"holder": "somebody", "ttl_ms": 60000})
        # What was decided is with the lease, for whoever looks at the node.
        state = call(server, "GET", "/v1/admin/leases/ended", None)["state"]
        (recent,) = state.pop("recent")
        assert recent == {key: state[key] for key in ("at", "action", "granted", "units", "demand", "reason")}
        assert state == settings.decisions()[-1]
        shown = run("autoscale", "status", "--url", server.http, "--key", key.read_text().strip())
        assert decided.strip() in shown.stdout, shown.stdout
        assert await scaler.interrupt() == 0
    taken = call(server, "POST", "/v1/admin/leases/ended", {"holder": "somebody", "ttl_ms": 60000})
    assert taken["holder"] == "somebody"


async def test_keda_is_told_nothing_by_a_scaler_that_stands_by(tmp_path, server):
    key = server.data / "admin.key"
    lease = f'[lease]\nurl = "{server.http}"\nkey_file = "{key}"\nname = "stands-by"\n'
    path = "/v1/admin/leases/stands-by"
    with Demand(7.0) as source:
        settings = Scaler(tmp_path, page(source), KEDA, POLICY + lease)
        call(server, "POST", path, {"holder": "somebody", "ttl_ms": 60000})
        assert await said_to_keda(settings, "--apply") == (503, None)
        call(server, "DELETE", f"{path}?holder=somebody", None)
        assert await said_to_keda(settings, "--apply") == (200, 10)
        # Who stood by does not know what the other decided meanwhile, and does not go on from its own log.
        call(server, "POST", path, {"holder": "somebody", "ttl_ms": 60000})
        assert await said_to_keda(settings, "--apply") == (503, None)
        call(server, "DELETE", f"{path}?holder=somebody", None)
    with Demand(None) as source:
        again = Scaler(tmp_path, page(source), KEDA, POLICY + lease)
        assert await said_to_keda(again, "--apply") == (503, None)

"""Probes in a cell: asked at the home of an account each step is seen, and elsewhere what the trace knows."""

import contextlib

import pytest

from harness.api import Api
from harness.cell import Cell
from harness.peer import Peer
from harness.server import unique

NODES = 2


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    cell = Cell(tmp_path_factory.mktemp("cell"), NODES)
    yield cell
    cell.end()


async def test_a_probe_is_seen_at_the_home_and_its_trace_elsewhere(cell):
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)
        for api in apis:
            await api.eventually("/v1/cluster", lambda seen: seen["well"] and seen["nodes"]["alive"] == NODES)
        jid = f"{unique('probed')}@localhost"
        await apis[0].account(jid)
        device = await Peer.connect(cell.nodes[0], jid, plugins=["xep_0198"])
        home = (await apis[0].ok("GET", f"/v1/cluster/where/{jid}"))["home"]
        for api in apis:
            report = await api.ok("POST", "/v1/trace/send", {"to": jid})
            found = [hop["hop"] for hop in report["hops"]]
            assert (report["state"], report["home"]) == ("acknowledged", home), report
            if report["node"] == home:
                assert found == ["request", "home", "committed", "given", "written", "arrived", "acknowledged", "ended"]
                assert {hop["node"] for hop in report["hops"]} == {home}
            else:
                assert found == ["request", "committed", "given", "acknowledged", "ended"]
                assert [hop["hop"] for hop in report["missing"]] == ["home", "written", "arrived"]
                assert all(home in hop["reason"] for hop in report["missing"])
            await device.notification(report["id"])
        await device.close()

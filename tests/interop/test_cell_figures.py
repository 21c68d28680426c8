"""The dashboard and the alerts of a cell: every query has data, and no alert fires while all is well."""

import pytest
from test_operations import RULES, dashboard_queries, has_data, selectors

from harness import prometheus
from harness.api import Api
from harness.cell import Cell
from harness.inbox import deadline
from harness.prometheus import Prometheus
from harness.raw import CLIENT, Raw
from harness.server import unique

pytestmark = pytest.mark.skipif(not prometheus.is_installed(), reason="Debian's prometheus is not installed")


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    cell = Cell(tmp_path_factory.mktemp("cell"), 2)
    yield cell
    cell.end()


@pytest.fixture
async def talking(cell):
    """Two clients on different nodes, one of whose accounts is at home on each."""
    api, raws = Api(cell.nodes[0]), {}
    while len(raws) < 2:
        name = unique("user")
        await api.account(f"{name}@localhost")
        home = (await api.ok("GET", f"/v1/cluster/where/{name}@localhost"))["home"]
        if home not in raws:
            # To the node that is not its home.
            node = cell.nodes[0 if home == cell.name(1) else 1]
            raws[home] = await Raw.logged_in(node, name)
    await api.aclose()
    yield list(raws.values())
    for raw in raws.values():
        await raw.close()


@pytest.fixture
def scraped(cell, tmp_path):
    scraped = Prometheus(tmp_path, cell.nodes[0], RULES)
    yield scraped
    scraped.end()


async def test_every_query_of_a_cell_has_data(talking, scraped):
    wanted = {query: title for title, query in dashboard_queries() if "carillon_cell_" in query}
    for alert in scraped.alerts():
        wanted |= {selector: alert["name"] for selector in selectors(alert["query"]) if "carillon_cell_" in selector}
    assert len(wanted) > 20
    alice, bob = talking
    async with deadline("data for every query", 60):
        while wanted:
            print(f"no data yet: {wanted}")
            alice.send(f"<message to='{bob.jid}' type='chat'><body>hello</body></message>")
            await bob.until(lambda e: e.tag == CLIENT + "message")
            wanted = {query: title for query, title in wanted.items() if not has_data(scraped.query(query))}
    firing = [alert["name"] for alert in scraped.alerts() if alert["state"] == "firing"]
    assert not firing, firing

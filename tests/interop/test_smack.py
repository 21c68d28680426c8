"""Smack's integration tests, which hold a server to the specifications; what each is known to say of this one is in docs/smack.md."""

import re

import pytest

from harness import smack
from harness.server import ROOT

# `| `PingIntegrationTest.pingServer` | passed | |`
ROW = re.compile(r"^\| `(?P<test>[^`]+)` \| (?P<end>passed|failed|not possible|not run|unstable) \|", re.MULTILINE)
# What Smack does not run here, and what may end either way; the table says why.
NOT_RUN, UNSTABLE = "not run", "unstable"

# One of a class whose other tests are not run.
ALONE = "FileTransferIntegrationTest.ibbFileTransferTest"


def known():
    """How each test is known to end. A row without a connection is about all the connections that a test runs with."""
    return {row["test"]: row["end"] for row in ROW.finditer((ROOT / "docs/smack.md").read_text())}


def differences(found, table):
    """Where tests end otherwise than the table says, and why."""
    for test, (end, why) in sorted(found.items()):
        row = test if test in table else test.partition(" (")[0]
        if table.get(row) not in (end, UNSTABLE):
            yield row, f"{test}: {end}, and not {table.get(row, 'in the table')}: {why}"


@pytest.mark.skipif(smack.why_not() is not None, reason=smack.why_not() or "")
@pytest.mark.timeout(2 * smack.RUN_S + 60)
def test_each_of_smacks_tests_ends_as_the_table_says(tmp_path):
    table = known()
    tests = smack.Smack(tmp_path)
    try:
        found = tests.run() | tests.run(ALONE)
        wrong = dict(differences(found, table))
        # Some of them race against their own listeners: what failed is run once more.
        failed = [test for test in wrong if "." in test and table.get(test) == smack.PASSED]
        if failed:
            again = tests.run(*failed)
            wrong = dict(differences(found | again, table))
    finally:
        tests.end()
    assert not wrong, "\n".join(wrong.values())
    # Connections over WebSocket need a port below 1024, which not everybody may listen at.
    ran = {test for name in found for test in (name, name.partition(" (")[0])}
    wanted = {test for test, end in table.items() if end != NOT_RUN}
    missing = {test for test in wanted - ran if tests.websockets or "websocket" not in test}
    assert not missing, f"these did not run: {sorted(missing)}"

"""Smack's integration tests, which hold a server to the specifications; what each is known to say of this one is in docs/smack.md."""

import re

import pytest

from harness import smack
from harness.server import ROOT

# `| `PingIntegrationTest.pingServer` | passed | |`
ROW = re.compile(r"^\| `(?P<test>[^`]+)` \| (?P<end>passed|failed|not possible) \|", re.MULTILINE)


def known():
    """How each test is known to end. A row without a connection is about all the connections that a test runs with."""
    return {row["test"]: row["end"] for row in ROW.finditer((ROOT / "docs/smack.md").read_text())}


@pytest.mark.skipif(smack.why_not() is not None, reason=smack.why_not() or "")
@pytest.mark.timeout(smack.RUN_S + 60)
def test_each_of_smacks_tests_ends_as_the_table_says(tmp_path):
    tests = smack.Smack(tmp_path)
    try:
        found = tests.run()
    finally:
        tests.end()
    table = known()
    rows = {test: test if test in table else test.partition(" (")[0] for test in found}
    wrong = [
        f"{test}: {end}, and not {table.get(rows[test], 'in the table')}: {why}"
        for test, (end, why) in sorted(found.items())
        if end != table.get(rows[test])
    ]
    assert not wrong, "\n".join(wrong)
    # Connections over WebSocket need a port below 1024, which not everybody may listen at.
    missing = {test for test in table.keys() - set(rows.values()) if tests.websockets or "websocket" not in test}
    assert not missing, f"these did not run: {sorted(missing)}"

"""The clients in TypeScript, with a real node: their own tests, run by Node."""

from harness.server import ROOT

SDK = ROOT / "sdk"


def test_the_client_for_senders(built, program):
    print(program("npm", "test", "--workspace", "typescript", cwd=SDK))


def test_the_device(built, program):
    print(program("npm", "test", "--workspace", "device-typescript", cwd=SDK))


def test_the_player(built, program):
    print(program("npm", "test", "--workspace", "match-typescript", cwd=SDK))


def test_the_demo_of_matches_is_what_its_source_makes(program, tmp_path):
    """The node has the script inside, so that it is built without Node."""
    program("npx", "tsc", "-p", "match-typescript/demo", cwd=SDK)
    program(SDK / "match-typescript/demo/build", tmp_path / "page.js", cwd=SDK)
    made = (tmp_path / "page.js").read_text()
    assert made == (ROOT / "crates/http/src/demo/page.js").read_text(), "run sdk/match-typescript/demo/build"

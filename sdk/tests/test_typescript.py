"""The clients in TypeScript, with a real node: their own tests, run by Node."""

from harness.server import ROOT

SDK = ROOT / "sdk"


def test_the_client_for_senders(built, program):
    print(program("npm", "test", "--workspace", "typescript", cwd=SDK))


def test_the_device(built, program):
    print(program("npm", "test", "--workspace", "device-typescript", cwd=SDK))


def test_the_player(built, program):
    print(program("npm", "test", "--workspace", "match-typescript", cwd=SDK))

"""The clients in TypeScript, with a real node: their own tests, run by Node."""

from harness.server import ROOT

SDK = ROOT / "sdk"


def test_the_client_for_senders(program):
    program("npx", "tsc", "-p", "typescript", cwd=SDK)
    print(program("npm", "test", "--workspace", "typescript", cwd=SDK))


def test_the_device(program):
    program("npx", "tsc", "-p", "typescript", cwd=SDK)
    program("npx", "tsc", "-p", "device-typescript", cwd=SDK)
    print(program("npm", "test", "--workspace", "device-typescript", cwd=SDK))

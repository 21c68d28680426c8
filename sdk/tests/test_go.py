"""The client in Go, with a real node: its own tests, by the tools of Go."""

from harness.server import ROOT

SDK = ROOT / "sdk/go"


def test_the_client_for_senders(program):
    assert program("gofmt", "-l", ".", cwd=SDK) == ""
    program("go", "vet", "./...", cwd=SDK)
    program("go", "build", "./...", cwd=SDK)
    print(program("go", "test", "-count=1", "-v", "./...", cwd=SDK))

"""The header in C: compiled as strictly as it goes, the frames of the server, and a match between two programs."""

import asyncio
import contextlib
import json
import re
import urllib.request

import pytest

from harness.server import ROOT, unique

SDK = ROOT / "sdk/match-c"
VECTORS = ROOT / "crates/wire/src/frame/game/vectors.txt"
STRICT = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TICKS = 60


def test_its_frames_are_those_of_the_server(program, tmp_path):
    program("cc", *STRICT, *SANITIZED, SDK / "test/vectors.c", "-o", tmp_path / "vectors", cwd=tmp_path)
    assert program(tmp_path / "vectors", VECTORS, cwd=tmp_path).endswith(" 0 failures\n")


def test_the_header_serves_cpp_and_has_a_bound(program, tmp_path):
    (tmp_path / "all.cpp").write_text('#define CARILLON_MATCH_IMPLEMENTATION\n#include "carillon_match.h"\n')
    program("c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-I", SDK, "-c", "all.cpp", cwd=tmp_path)
    assert len((SDK / "carillon_match.h").read_text().splitlines()) <= 500


@pytest.fixture(scope="module")
def play(program, tmp_path_factory):
    built = tmp_path_factory.mktemp("play") / "play"
    program("cc", *STRICT, *SANITIZED, SDK / "test/play.c", "-o", built, cwd=SDK)
    return built


@pytest.fixture
def tokens(server):
    """The tokens of a new match, by seat."""

    def ask(method, path, body=None):
        headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(server.http + path, data, headers, method=method)) as answer:
            return json.load(answer)

    path = f"/v1/matchmaking/{unique('c-queue')}"
    ask("PUT", path, {"seats": 2, "tick_rate": 30})
    accounts = [unique("c-player") for _ in range(2)]
    for account in accounts:
        ask("POST", path, {"id": account, "account": account})
    found = {}
    for account in accounts:
        while (ticket := ask("GET", f"{path}/{account}"))["state"] == "waiting":
            pass
        found[ticket["seating"]["seat"]] = ticket["seating"]["token"]
    return [found[0], found[1]]


@pytest.fixture
def run(server, play):
    """Runs a program whose standard input and output are a connection of TLS; its code and what it printed."""

    async def pass_on(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def run(*arguments):
        context = server.tls()
        context.set_alpn_protocols(["carillon-match/1"])
        at = {"host": "127.0.0.1", "port": server.port("c2s_tls")}
        reader, writer = await asyncio.open_connection(**at, ssl=context, server_hostname="localhost")
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(play, *map(str, arguments), stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            async with asyncio.timeout(60):
                to_node = asyncio.create_task(pass_on(program.stdout, writer))
                to_program = asyncio.create_task(pass_on(reader, program.stdin))
                said = await program.stderr.read()
                await asyncio.gather(to_node, to_program, program.wait())
        finally:
            if program.returncode is None:
                program.kill()
            writer.transport.abort()
        return program.returncode, said.decode()

    return run


def fields(ended):
    code, said = ended
    assert code == 0, said
    return dict(re.findall(r"(\w+)=(\S+)", said)) | ({"desync": "yes"} if "desync" in said else {})


def test_two_programs_play_a_match(run, tokens):
    async def both():
        return await asyncio.gather(*(run(token, TICKS) for token in tokens))

    seen = [fields(ended) for ended in asyncio.run(both())]
    for one in seen:
        assert one["reason"] == "0"
        assert "desync" not in one
        # Most of its inputs were in time, on a machine that may be busy.
        assert int(one["own"]) > TICKS / 2, seen
    assert seen[0]["hash"] == seen[1]["hash"]
    assert seen[0]["outcome"] == bytes.fromhex(seen[0]["hash"])[::-1].hex() == seen[1]["outcome"]


def test_a_program_that_was_cut_goes_on(run, tokens, tmp_path):
    async def one_is_cut():
        one = asyncio.create_task(run(tokens[0], TICKS))
        assert await run(tokens[1], TICKS, 20, tmp_path / "kept") == (0, "")
        return await asyncio.gather(one, run(tokens[1], TICKS, 0, tmp_path / "kept"))

    seen = [fields(ended) for ended in asyncio.run(one_is_cut())]
    assert seen[0]["hash"] == seen[1]["hash"]
    assert [each["reason"] for each in seen] == ["0", "0"]


def test_a_wrong_token_is_told(run):
    code, said = asyncio.run(run("nothing", TICKS))
    assert (code, said.split()[0]) == (0, "error=bad-token")

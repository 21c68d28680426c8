"""The shell over the commands, and conversations that are recorded."""

import asyncio
import os
import subprocess

from harness.inbox import deadline
from harness.raw import Raw
from harness.server import BINARY, ROOT, run, unique
from harness.terminal import Terminal

FEATURES = "carillon/aws,carillon/kubernetes,carillon/postgres,carillon/nats,carillon/redis,carillon/modules"
SM = "urn:xmpp:sm:3"


def audit(server):
    """The node's lines about commands, as (outcome, command)."""
    lines = [line for line in server.log.read_text().splitlines() if "an operator's command" in line]
    return lines


async def test_a_shell_reads_and_refuses_to_write(server, user):
    alice = await user("alice")
    lines = f"account show {alice}\n# nothing\nsession end {alice}\nnonsense\nserve\naccount set\n"
    done = await server.command("shell", input=lines)
    assert done.returncode == 1
    assert f"{alice}@localhost" in done.stdout
    assert "the shell is read-only: start it with --write REASON" in done.stderr
    assert "unrecognized subcommand 'nonsense'" in done.stderr
    assert "this command is not for a shell" in done.stderr
    logged = [line for line in audit(server) if alice in line or "nonsense" in line or "serve" in line]
    assert any("done" in line and f"account show {alice}" in line for line in logged), logged
    assert any("refused" in line and f"session end {alice}" in line for line in logged), logged
    assert any("refused" in line and "nonsense" in line for line in logged), logged
    assert any("refused" in line and "serve" in line for line in logged), logged


async def test_a_shell_with_a_reason_writes(server, user):
    alice = await user("alice")
    raw = await Raw.logged_in(server, alice)
    other = unique("made")
    lines = f"session end {alice}\naccount create {other} --password 'very secret'\nsession list --account {alice}\n"
    done = await server.command("shell", "--write", "ticket 4711", "--json", input=lines)
    assert done.returncode == 0, done.stderr
    assert '"sessions_ended": 1' in done.stdout
    await raw.stream_error("policy-violation")
    logged = [line for line in audit(server) if alice in line or other in line]
    ended = [line for line in logged if f"session end {alice}" in line]
    assert ["begun" in line or "done" in line for line in ended] == [True, True], logged
    assert all("ticket 4711" in line for line in ended)
    assert "very secret" not in server.log.read_text()
    await raw.close()


async def test_a_shell_on_a_terminal_completes_and_remembers(server, user):
    alice = await user("alice")
    environment = {**os.environ, "TERM": "xterm"}
    shell = Terminal(BINARY, "shell", "--data-dir", server.data, env=environment)
    try:
        await shell.shows("read-only")
        await shell.shows("carillon")
        # Tab completes the command and its verb.
        shell.press("acc\t")
        await shell.shows("account ")
        shell.press("sho\t")
        await shell.shows("show ")
        shell.press(f"{alice}\r")
        await shell.shows(f"{alice}@localhost")
        await shell.shows("carillon")
        # The arrow calls the line up again.
        shell.press("\x1b[A\r")
        await shell.shows(f"{alice}@localhost")
        shell.press("exit\r")
        assert await shell.code() == 0
    finally:
        shell.close()


async def test_commands_that_cannot_be_logged_are_not_done(server, keys, user):
    alice = await user("alice")
    raw = await Raw.logged_in(server, alice)
    key = await keys("send")
    done = run("shell", "--write", "x", "--url", server.http, "--key", key.key, input=f"session end {alice}\n")
    assert done.returncode == 1
    assert "the key lacks scope `admin`" in done.stderr
    await raw.ping()
    await raw.close()


def replay(file):
    """Plays a conversation with the tests of the core."""
    command = ["cargo", "test", "--workspace", "--features", FEATURES, "--test", "chat", "--", "with_a_real_store"]
    environment = {**os.environ, "CHAT": str(file)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


async def test_what_is_recorded_is_replayed(server, api, keys, user, tmp_path):
    alice, bob = await user("alice"), await user("bob")
    key = await keys("admin", "trace_payload")
    file = tmp_path / "bug.chat"
    arguments = ("trace", "record", alice, "-o", file, "--for", "60s", "--count", "17", "--key", key.key)
    recording = asyncio.create_task(server.command(*arguments))
    await api.figure_is("traces", lambda count: count == 1)
    raw, other = await Raw.logged_in(server, alice, resource="My phone"), await Raw.logged_in(server, bob)
    raw.send(f"<enable xmlns='{SM}' resume='true'/>")
    await raw.element()
    other.send(f"<message to='{alice}@localhost' type='chat' id='m1'><body>for nobody else's eyes</body></message>")
    await raw.until(lambda e: e.get("id") == "m1")
    raw.send(f"<a xmlns='{SM}' h='1'/>")
    raw.send(f"<message to='{bob}@localhost' type='chat' id='m2'><body>nor is this</body></message>")
    raw.send("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
    await raw.until(lambda e: e.get("id") == "p")
    raw.send("<iq type='get' id='roster'><query xmlns='jabber:iq:roster'/></iq>")
    await raw.until(lambda e: e.get("id") == "roster")
    async with deadline("the end of the recording"):
        while not recording.done():
            await raw.ping()
    done = await recording
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    assert "eyes" not in text
    assert "nor is" not in text
    assert f"account {bob} secret" in text
    played = await asyncio.to_thread(replay, file)
    assert played.returncode == 0, text + played.stdout + played.stderr
    assert "1 conversations, 0 failed" in played.stdout + played.stderr or "1 passed" in played.stdout
    # A server that said something else fails.
    file.write_text(text.replace("xmlns='urn:xmpp:sid:0' id='{any}'", "xmlns='urn:xmpp:sid:0' id='wrong'", 1))
    played = await asyncio.to_thread(replay, file)
    assert played.returncode != 0
    assert "id='wrong'" in played.stdout + played.stderr
    for one in (raw, other):
        await one.close()


async def test_a_recording_takes_the_scope(server, user, tmp_path):
    done = await server.command("trace", "record", await user("alice"), "-o", tmp_path / "x.chat")
    assert (done.returncode, "lacks scope `trace_payload`" in done.stderr) == (1, True)
    assert not (tmp_path / "x.chat").exists()

"""Invitations of a real node: the commands of the book, an account registered by a token, and its inviter in its roster."""

import asyncio
import shlex
import xml.etree.ElementTree as ET

import httpx
import pytest

from harness.api import Api
from harness.inbox import deadline
from harness.peer import Peer
from harness.raw import CLIENT, STANZA_ERRORS, Raw
from harness.server import ROOT, Server
from harness.transcript import blocks

PAGE = ROOT / "docs/book/invitations.md"
URL = "https://chat.example.org"
REGISTER = "{jabber:iq:register}"
BY_TOKEN = "{urn:xmpp:ibr-token:0}register"
ROSTER = "{jabber:iq:roster}"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    settings = {"invitations__enabled": "true", "invitations__url": URL, "invitations__per_account": 2}
    server = Server(tmp_path_factory.mktemp("invitations"), domain="localhost", **settings)
    yield server
    server.end()


@pytest.fixture
async def operator(node):
    api = Api(node)
    yield api
    await api.aclose()


@pytest.fixture
async def client(node):
    """Opens streams on which nobody has logged in."""
    streams = []

    async def connect():
        streams.append(await Raw.secured(node))
        return streams[-1]

    yield connect
    for stream in streams:
        await stream.close()


async def show(client, token, id="show"):
    """Shows a token; the condition of the error, if it is one."""
    preauth = f"<preauth xmlns='urn:xmpp:pars:0' token='{token}'/>"
    answer = await client.ask(f"<iq type='set' id='{id}' to='localhost'>{preauth}</iq>", id)
    return condition(answer)


async def register(client, name, password="secret", id="register"):
    """Registers; the condition of the error, if it is one."""
    form = f"<username>{name}</username><password>{password}</password>"
    iq = f"<iq type='set' id='{id}' to='localhost'><query xmlns='jabber:iq:register'>{form}</query></iq>"
    return condition(await client.ask(iq, id))


def condition(answer):
    if answer.get("type") == "result":
        return None
    error = answer.find(CLIENT + "error")
    return next(child.tag for child in error if child.tag.startswith(STANZA_ERRORS)).removeprefix(STANZA_ERRORS)


async def roster(client):
    """Subscriptions by address."""
    answer = await client.ask("<iq type='get' id='roster'><query xmlns='jabber:iq:roster'/></iq>", "roster")
    return {item.get("jid"): item.get("subscription") for item in answer.iter(ROSTER + "item")}


async def test_the_commands_of_the_book(node, operator):
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    assert len(lines) == 7
    printed = []
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "carillon"
        done = await node.command(*arguments)
        assert done.returncode == 0, f"{line}: {done}"
        printed.append(done.stdout.strip())
    assert all(url.startswith(f"{URL}/invitations/localhost/") for url in printed[1:5]), printed
    listed = await operator.ok("GET", "/v1/invitations")
    shown = [(one["inviter"], one["localpart"], one["uses_max"], one["registers"]) for one in listed["invitations"]]
    assert shown == [(None, None, 30, True), (None, "juliet", 1, True), ("romeo", None, 1, True)]


async def test_whoever_registers_by_a_token_has_the_inviter_in_its_roster(node, operator, client):
    await operator.account("alice@localhost")
    alice = Peer(node, "alice@localhost")
    await alice.log_in()
    async with deadline("the roster"):
        await alice.xmpp.get_roster()
    made = await operator.ok("POST", "/v1/invitations", {"inviter": "alice"}, status=201)
    assert made["uri"] == f"xmpp:alice@localhost?roster;preauth={made['token']};ibr=y"
    new = await client()
    assert new.features.find(BY_TOKEN) is not None
    assert new.features.find("{http://jabber.org/features/iq-register}register") is None
    assert await show(new, "wrong") == "item-not-found"
    assert await show(new, made["token"]) is None
    assert await register(new, "alice") == "conflict"
    assert await register(new, "bob") is None
    await alice.presences.take(
        lambda p: p.get("from") == "bob@localhost" and p.get("type") == "subscribed", "its contact"
    )
    await new.log_in("bob", presence=False)
    assert await roster(new) == {"alice@localhost": "both"}
    new.send("<presence/>")
    seen = await new.until(lambda e: e.tag == CLIENT + "presence" and e.get("from") == alice.jid)
    assert seen.get("type") is None, ET.tostring(seen)
    await alice.presence(new.jid)
    async with deadline("the roster"):
        await alice.xmpp.get_roster()
    assert alice.xmpp.client_roster["bob@localhost"]["subscription"] == "both"
    await alice.close()
    # It was for one.
    assert await show(await client(), made["token"]) == "item-not-found"


async def test_many_at_once_get_no_more_accounts_than_an_invitation_has_uses(operator, client):
    made = await operator.ok("POST", "/v1/invitations", {"uses": 3}, status=201)
    clients = [await client() for _ in range(8)]
    assert await asyncio.gather(*(show(one, made["token"]) for one in clients)) == [None] * 8
    said = await asyncio.gather(*(register(one, f"many{n}") for n, one in enumerate(clients)))
    assert sorted(map(str, said)) == ["None"] * 3 + ["item-not-found"] * 5
    listed = await operator.ok("GET", "/v1/invitations")
    assert [one["uses"] for one in listed["invitations"] if one["id"] == made["id"]] == [3]
    accounts = await operator.ok("GET", "/v1/admin/accounts?limit=1000")
    assert len([one for one in accounts["accounts"] if one["jid"].startswith("many")]) == 3


async def test_an_account_invites_from_its_client_and_another_accepts(node, operator):
    for name in ("carol", "dave"):
        await operator.account(f"{name}@localhost")
    carol, dave = await Raw.logged_in(node, "carol"), await Raw.logged_in(node, "dave")
    try:
        command = (
            "<command xmlns='http://jabber.org/protocol/commands' node='urn:xmpp:invite#invite' action='execute'/>"
        )
        ask = f"<iq type='set' id='{{}}' to='localhost'>{command}</iq>"
        answer = await carol.ask(ask.format("invite"), "invite")
        fields = {f.get("var"): f[0].text for f in answer.iter("{jabber:x:data}field")}
        token = fields["uri"].removeprefix("xmpp:carol@localhost?roster;preauth=").removesuffix(";ibr=y")
        assert fields["landing-url"] == f"{URL}/invitations/localhost/{token}"
        preauth = f"<preauth xmlns='urn:xmpp:pars:0' token='{token}'/>"
        dave.send(f"<presence to='carol@localhost' type='subscribe'>{preauth}</presence>")
        for one, other in ((carol, dave), (dave, carol)):
            await one.until(lambda e, jid=other.jid: e.tag == CLIENT + "presence" and e.get("from") == jid)
            assert await roster(one) == {other.jid.partition("/")[0]: "both"}
        # Two in its name are as many as it may have here.
        assert condition(await carol.ask(ask.format("second"), "second")) is None
        assert condition(await carol.ask(ask.format("third"), "third")) == "resource-constraint"
    finally:
        await carol.close()
        await dave.close()


async def test_the_page_of_an_invitation(node, operator, client):
    made = await operator.ok("POST", "/v1/invitations", {"localpart": "dora"}, status=201)
    path = made["landing_url"].removeprefix(URL)
    async with httpx.AsyncClient(base_url=node.http, trust_env=False) as visitor:
        page = await visitor.get(path)
        assert page.status_code == 200
        assert f'href="xmpp:dora@localhost?register;preauth={made["token"]}"' in page.text
        new = await client()
        assert await show(new, made["token"]) is None
        form = await new.ask("<iq type='get' id='form'><query xmlns='jabber:iq:register'/></iq>", "form")
        assert form.findtext(f"{REGISTER}query/{REGISTER}username") == "dora"
        assert await register(new, "eve") == "not-acceptable"
        assert await register(new, "dora") is None
        assert (await visitor.get(path)).status_code == 404

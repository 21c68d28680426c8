"""What a server answers for itself: ping, discovery, the roster, and what it does not know."""

import pytest
from slixmpp.exceptions import IqError

NOBODY = "nobody-of-this-name@localhost"


async def test_ping_of_server_and_account(peer):
    alice = await peer()
    assert await alice.plugin("xep_0199").ping("localhost") >= 0
    assert await alice.plugin("xep_0199").ping(alice.bare) >= 0


async def test_ping_of_another_session_and_of_nobody(peer):
    alice, bob = await peer(), await peer()
    assert await alice.plugin("xep_0199").ping(bob.jid) >= 0
    with pytest.raises(IqError) as caught:
        await alice.xmpp.make_iq_get("urn:xmpp:ping", ito=f"{bob.bare}/gone").send()
    assert caught.value.condition == "service-unavailable"


async def test_what_the_server_can_do(peer):
    alice = await peer()
    info = (await alice.plugin("xep_0030").get_info("localhost"))["disco_info"]
    assert ("server", "im") in {identity[:2] for identity in info["identities"]}
    expected = {
        "http://jabber.org/protocol/disco#info",
        "http://jabber.org/protocol/disco#items",
        "urn:xmpp:ping",
        "urn:xmpp:carbons:2",
    }
    assert expected <= set(info["features"])


async def test_what_an_account_can_do(peer):
    alice = await peer()
    info = (await alice.plugin("xep_0030").get_info(alice.bare))["disco_info"]
    assert ("account", "registered") in {identity[:2] for identity in info["identities"]}


async def test_the_server_names_its_topics(peer):
    alice = await peer()
    items = (await alice.plugin("xep_0030").get_items("localhost"))["disco_items"]["items"]
    assert "pubsub.localhost" in {str(item[0]) for item in items}
    info = (await alice.plugin("xep_0030").get_info("pubsub.localhost"))["disco_info"]
    assert ("pubsub", "service") in {identity[:2] for identity in info["identities"]}
    assert "http://jabber.org/protocol/pubsub" in info["features"]


async def test_the_roster_is_empty(peer):
    alice = await peer()
    roster = await alice.xmpp.get_roster()
    assert dict(roster["roster"]["items"]) == {}


@pytest.mark.parametrize("to", ["localhost", None])
async def test_a_question_that_nobody_knows(peer, to):
    alice = await peer()
    with pytest.raises(IqError) as caught:
        await alice.xmpp.make_iq_get("urn:example:unknown", ito=to).send()
    assert caught.value.condition == "service-unavailable"
    await alice.ping()


async def test_a_question_to_an_account_of_somebody_else(peer):
    alice, bob = await peer(), await peer()
    for to in (bob.bare, NOBODY):
        with pytest.raises(IqError) as caught:
            await alice.xmpp.make_iq_get("urn:example:unknown", ito=to).send()
        assert caught.value.condition == "service-unavailable"


async def test_a_question_is_carried_to_a_session_and_its_answer_back(peer):
    alice, bob = await peer(plugins=["xep_0092"]), await peer(plugins=["xep_0092"])
    bob.plugin("xep_0092").software_name = "a client"
    version = await alice.plugin("xep_0092").get_version(bob.jid)
    assert version["software_version"]["name"] == "a client"

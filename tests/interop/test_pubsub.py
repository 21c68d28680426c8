"""Topics: as pubsub nodes (XEP-0060) to XMPP clients, as topics to the HTTP API, the same thing to both."""

import asyncio
import datetime
import json
import xml.etree.ElementTree as ET

import pytest
from slixmpp.exceptions import IqError

from harness.peer import CLIENT, DELAY, JSON
from harness.server import unique

SERVICE = "pubsub.localhost"
EVENT = "{http://jabber.org/protocol/pubsub#event}"
ENTRY = "{http://www.w3.org/2005/Atom}entry"
PUBSUB = ["xep_0060"]


def entry(text):
    element = ET.Element(ENTRY)
    ET.SubElement(element, "{http://www.w3.org/2005/Atom}title").text = text
    return element


def title(item):
    return item.findtext(f"{ENTRY}/{{http://www.w3.org/2005/Atom}}title")


class Follower:
    """A client of the service."""

    def __init__(self, peer):
        self.peer = peer
        self.pubsub = peer.plugin("xep_0060")

    async def create(self, node, **config):
        form = None
        if config:
            form = self.peer.plugin("xep_0004").make_form(ftype="submit")
            form.add_field("FORM_TYPE", "hidden", value="http://jabber.org/protocol/pubsub#node_config")
            for name, value in config.items():
                form.add_field(f"pubsub#{name}", value=value)
        return await self.pubsub.create_node(SERVICE, node, config=form)

    async def subscribe(self, node):
        return await self.pubsub.subscribe(SERVICE, node, subscribee=self.peer.bare)

    async def publish(self, node, text, id=None):
        return await self.pubsub.publish(SERVICE, node, id=id, payload=entry(text))

    async def event(self, node):
        """The next event of a topic: what is in `<event/>`, and the whole message."""

        def is_event(message):
            return any(child.get("node") == node for child in message.findall(f"{EVENT}event/*"))

        message = await self.peer.messages.take(is_event, f"an event of {node}")
        return message.find(f"{EVENT}event/*"), message

    async def item(self, node):
        """The next item of a topic."""
        items, message = await self.event(node)
        assert items.tag == EVENT + "items", ET.tostring(message)
        assert message.get("from") == SERVICE
        return items.find(EVENT + "item"), message

    def events_left(self, node):
        return self.peer.messages.left(lambda m: any(c.get("node") == node for c in m.findall(f"{EVENT}event/*")))


@pytest.fixture
async def follower(peer):
    async def connect(jid=None):
        return Follower(await peer(jid, plugins=PUBSUB))

    return connect


@pytest.fixture
def node():
    return unique("news")


async def condition(awaitable):
    """The condition of the error that answers a request."""
    with pytest.raises(IqError) as caught:
        await awaitable
    return caught.value.condition


async def test_create_publish_follow_retract_delete(follower, node):
    owner, fan = await follower(), await follower()
    await owner.create(node)
    subscription = (await fan.subscribe(node))["pubsub"]["subscription"]
    assert (subscription["subscription"], str(subscription["jid"])) == ("subscribed", fan.peer.bare)
    await owner.publish(node, "one", id="1")
    item, _ = await fan.item(node)
    assert (item.get("id"), title(item), item.get("publisher")) == ("1", "one", owner.peer.bare)
    kept = (await fan.pubsub.get_items(SERVICE, node))["pubsub"]["items"]["substanzas"]
    assert [(item["id"], title(item.xml)) for item in kept] == [("1", "one")]
    await owner.pubsub.retract(SERVICE, node, "1", notify=True)
    retracted, _ = await fan.event(node)
    assert retracted.find(EVENT + "retract").get("id") == "1"
    assert len((await fan.pubsub.get_items(SERVICE, node))["pubsub"]["items"]["substanzas"]) == 0
    await owner.pubsub.delete_node(SERVICE, node)
    deleted, _ = await fan.event(node)
    assert deleted.tag == EVENT + "delete"
    assert await condition(fan.pubsub.get_items(SERVICE, node)) == "item-not-found"


async def test_a_name_is_taken_once_and_made_up_when_none_is_given(follower, node):
    owner = await follower()
    await owner.create(node)
    assert await condition(owner.create(node)) == "conflict"
    made = await owner.create(None)
    name = made["pubsub"]["create"]["node"]
    assert name
    await owner.publish(name, "it exists")


async def test_configuration_is_read_and_changed(follower, node):
    owner = await follower()
    await owner.create(node, title="News of the day", max_items="2")
    form = (await owner.pubsub.get_node_config(SERVICE, node))["pubsub_owner"]["configure"]["form"]
    values = form.get_values()
    assert (values["pubsub#title"], values["pubsub#max_items"]) == ("News of the day", "2")
    for i in range(4):
        await owner.publish(node, str(i), id=str(i))
    kept = (await owner.pubsub.get_items(SERVICE, node))["pubsub"]["items"]["substanzas"]
    assert {item["id"] for item in kept} == {"2", "3"}
    change = owner.peer.plugin("xep_0004").make_form(ftype="submit")
    change.add_field("FORM_TYPE", "hidden", value="http://jabber.org/protocol/pubsub#node_config")
    change.add_field("pubsub#max_items", value="1")
    await owner.pubsub.set_node_config(SERVICE, node, change)
    form = (await owner.pubsub.get_node_config(SERVICE, node))["pubsub_owner"]["configure"]["form"]
    # What was not named stays.
    assert form.get_values()["pubsub#max_items"] == "1"
    assert form.get_values()["pubsub#title"] == "News of the day"


async def test_the_whole_form_is_sent_back_and_what_is_not_so_here_is_refused(follower, node):
    owner = await follower()
    # What clients ask for when they create a topic.
    await owner.create(node, deliver_payloads="1", deliver_notifications="1", persist_items="1", item_expire="max")
    form = (await owner.pubsub.get_node_config(SERVICE, node))["pubsub_owner"]["configure"]["form"]
    values = form.get_values()
    assert values["pubsub#deliver_payloads"] in (True, "1")
    form.reply()
    form["type"] = "submit"
    form.set_values(values)
    await owner.pubsub.set_node_config(SERVICE, node, form)
    change = owner.peer.plugin("xep_0004").make_form(ftype="submit")
    change.add_field("FORM_TYPE", "hidden", value="http://jabber.org/protocol/pubsub#node_config")
    change.add_field("pubsub#deliver_notifications", value="0")
    change.add_field("pubsub#subscribe", value="0")
    change.add_field("pubsub#title", value="a title")
    with pytest.raises(IqError) as caught:
        await owner.pubsub.set_node_config(SERVICE, node, change)
    assert caught.value.condition == "not-acceptable"
    assert "pubsub#deliver_notifications" in caught.value.text
    assert "pubsub#subscribe" in caught.value.text
    assert "pubsub#title" not in caught.value.text


async def test_an_owner_subscribes_nobody_else(follower, node):
    owner, other = await follower(), await follower()
    await owner.create(node)
    for jid in (other.peer.bare, "nobody@localhost"):
        assert await condition(owner.pubsub.subscribe(SERVICE, node, subscribee=jid)) == "bad-request"
    followers = (await owner.pubsub.get_node_subscriptions(SERVICE, node))["pubsub_owner"]["subscriptions"]
    assert len(followers["substanzas"]) == 0


async def test_rights(follower, node):
    owner, other = await follower(), await follower()
    await owner.create(node)
    assert await condition(other.publish(node, "mine")) == "forbidden"
    assert await condition(other.pubsub.delete_node(SERVICE, node)) == "forbidden"
    assert await condition(other.pubsub.get_node_config(SERVICE, node)) == "forbidden"
    await owner.pubsub.modify_affiliations(SERVICE, node, [(other.peer.bare, "publisher")])
    await other.publish(node, "now I may")


async def test_a_closed_topic_is_for_its_members(follower, node):
    owner, other = await follower(), await follower()
    await owner.create(node, access_model="whitelist")
    assert await condition(other.subscribe(node)) == "not-allowed"
    assert await condition(other.pubsub.get_items(SERVICE, node)) == "not-allowed"
    await owner.pubsub.modify_affiliations(SERVICE, node, [(other.peer.bare, "member")])
    await other.subscribe(node)
    await owner.publish(node, "for members")
    assert title((await other.item(node))[0]) == "for members"


async def test_what_is_not_there(follower, node):
    someone = await follower()
    for request in (
        someone.subscribe(node),
        someone.pubsub.get_items(SERVICE, node),
        someone.pubsub.delete_node(SERVICE, node),
        someone.pubsub.retract(SERVICE, node, "1"),
    ):
        assert await condition(request) == "item-not-found"


async def test_unsubscribed_means_no_more_items(follower, node):
    owner, fan = await follower(), await follower()
    await owner.create(node)
    await fan.subscribe(node)
    await owner.publish(node, "heard")
    await fan.item(node)
    await fan.pubsub.unsubscribe(SERVICE, node, subscribee=fan.peer.bare)
    await owner.publish(node, "unheard")
    owner.peer.chat(fan.peer.bare, "end")
    await fan.peer.message("end")
    assert not fan.events_left(node)
    assert await condition(fan.pubsub.unsubscribe(SERVICE, node, subscribee=fan.peer.bare)) == "unexpected-request"


async def test_purge_tells_the_followers(follower, node):
    owner, fan = await follower(), await follower()
    await owner.create(node, max_items="5")
    await fan.subscribe(node)
    for i in range(3):
        await owner.publish(node, str(i))
        await fan.item(node)
    await owner.pubsub.purge(SERVICE, node)
    purged, _ = await fan.event(node)
    assert purged.tag == EVENT + "purge"
    assert len((await fan.pubsub.get_items(SERVICE, node))["pubsub"]["items"]["substanzas"]) == 0


async def test_the_last_item_comes_at_subscription_and_at_login(follower, node):
    owner, fan = await follower(), await follower()
    await owner.create(node)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    await owner.publish(node, "kept", id="k")
    await fan.subscribe(node)
    item, message = await fan.item(node)
    assert (item.get("id"), title(item)) == ("k", "kept")
    stamp = datetime.datetime.fromisoformat(message.find(DELAY).get("stamp"))
    assert before <= stamp <= datetime.datetime.now(datetime.UTC)
    await fan.peer.close()
    await owner.publish(node, "newer", id="n")
    again = await follower(fan.peer.bare)
    item, message = await again.item(node)
    assert item.get("id") == "n"
    assert message.find(DELAY) is not None


async def test_a_device_that_has_the_last_item_is_spared_it(follower, peer, api, account, node):
    await api.ok("PUT", f"/v1/topics/{node}", {}, status=201)
    await api.ok("POST", f"/v1/topics/{node}/items", {"id": "v7", "payload": 7}, status=202)
    jid = await account()
    id = jid.partition("@")[0]
    await api.ok("PUT", f"/v1/devices/{id}/subscriptions/{node}", status=201)
    device = Follower(await peer(jid, plugins=PUBSUB, presence=False))
    device.peer.send(
        f"<presence><topics xmlns='urn:carillon:topics:0'><have topic='{node}' item='v7'/></topics></presence>"
    )
    await device.peer.presence(device.peer.jid)
    await api.ok("POST", f"/v1/topics/{node}/items", {"id": "v8", "payload": 8}, status=202)
    assert (await device.item(node))[0].get("id") == "v8"


async def test_one_item_over_http_reaches_everybody(follower, api, account, node):
    await api.ok("PUT", f"/v1/topics/{node}", {"title": "For all"}, status=201)
    jids = [await account("fan") for _ in range(20)]
    for jid in jids:
        await api.ok("PUT", f"/v1/devices/{jid.partition('@')[0]}/subscriptions/{node}", status=201)
    subscribers = (await api.ok("GET", f"/v1/topics/{node}/subscribers"))["subscribers"]
    assert set(subscribers) == set(jids)
    fans = await asyncio.gather(*(follower(jid) for jid in jids))
    payload = {"text": "é & <b>", "list": [1, 2.5, None]}
    published = await api.ok("POST", f"/v1/topics/{node}/items", {"payload": payload}, status=202)
    for fan in fans:
        item, message = await fan.item(node)
        assert item.get("id") == published["id"]
        assert json.loads(item.findtext(JSON)) == payload
        assert message.get("to") == fan.peer.jid
    items = (await api.ok("GET", f"/v1/topics/{node}/items"))["items"]
    assert [(item["id"], item["payload"]) for item in items] == [(published["id"], payload)]
    await api.ok("DELETE", f"/v1/topics/{node}", status=204)
    for fan in fans:
        assert (await fan.event(node))[0].tag == EVENT + "delete"


async def test_items_come_in_the_order_of_their_publication(follower, api, account, node):
    fan = await follower()
    await api.ok("PUT", f"/v1/topics/{node}", {"max_items": 100}, status=201)
    await fan.subscribe(node)
    for i in range(60):
        await api.ok("POST", f"/v1/topics/{node}/items", {"id": str(i), "payload": i}, status=202)
    assert [(await fan.item(node))[0].get("id") for _ in range(60)] == [str(i) for i in range(60)]


async def test_xml_over_http_is_what_xmpp_sees(follower, api, node):
    fan = await follower()
    await api.ok("PUT", f"/v1/topics/{node}", {}, status=201)
    await fan.subscribe(node)
    xml = "<entry xmlns='http://www.w3.org/2005/Atom'><title>over HTTP</title></entry>"
    await api.ok("POST", f"/v1/topics/{node}/items", {"payload_xml": xml}, status=202)
    assert title((await fan.item(node))[0]) == "over HTTP"


async def test_retracted_over_http(follower, api, node):
    fan = await follower()
    await api.ok("PUT", f"/v1/topics/{node}", {}, status=201)
    await fan.subscribe(node)
    await api.ok("POST", f"/v1/topics/{node}/items", {"id": "r", "payload": 1}, status=202)
    await fan.item(node)
    await api.ok("DELETE", f"/v1/topics/{node}/items/r", status=204)
    retracted, _ = await fan.event(node)
    assert retracted.find(EVENT + "retract").get("id") == "r"
    await api.problem(404, "unknown-item", "DELETE", f"/v1/topics/{node}/items/r")


async def test_what_xmpp_makes_http_sees(follower, api, node):
    owner = await follower()
    await owner.create(node, title="By XMPP")
    await owner.publish(node, "hello", id="h")
    topic = await api.ok("GET", f"/v1/topics/{node}")
    assert topic["config"]["title"] == "By XMPP"
    assert topic["affiliations"] == {owner.peer.bare: "owner"}
    [item] = (await api.ok("GET", f"/v1/topics/{node}/items"))["items"]
    assert (item["id"], item["publisher"]) == ("h", owner.peer.bare)
    assert title(ET.fromstring(f"<item>{item['payload_xml']}</item>")) == "hello"


async def test_what_one_follows_and_how_one_stands(follower, node):
    owner, fan = await follower(), await follower()
    await owner.create(node)
    await fan.subscribe(node)
    subscriptions = (await fan.pubsub.get_subscriptions(SERVICE))["pubsub"]["subscriptions"]["substanzas"]
    assert [s["node"] for s in subscriptions] == [node]
    affiliations = (await owner.pubsub.get_affiliations(SERVICE))["pubsub"]["affiliations"]["substanzas"]
    assert [(a["node"], a["affiliation"]) for a in affiliations] == [(node, "owner")]
    followers = (await owner.pubsub.get_node_subscriptions(SERVICE, node))["pubsub_owner"]["subscriptions"]
    assert [str(s["jid"]) for s in followers["substanzas"]] == [fan.peer.bare]


async def test_a_follower_without_presence_hears_nothing_until_it_is_there(follower, peer, account, api, node):
    await api.ok("PUT", f"/v1/topics/{node}", {}, status=201)
    jid = await account()
    await api.ok("PUT", f"/v1/devices/{jid.partition('@')[0]}/subscriptions/{node}", status=201)
    fan = Follower(await peer(jid, plugins=PUBSUB, presence=False))
    await api.ok("POST", f"/v1/topics/{node}/items", {"payload": "early"}, status=202)
    await fan.peer.ping()
    assert not fan.events_left(node)
    await fan.peer.available()
    item, message = await fan.item(node)
    assert json.loads(item.findtext(JSON)) == "early"
    assert message.get("type") == "headline"
    assert message.find(CLIENT + "body") is None

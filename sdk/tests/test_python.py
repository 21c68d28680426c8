"""The client in Python, with a real node."""

import concurrent.futures
import inspect
import re
import time
import typing
import urllib.request

import carillon_sender.client
import carillon_sender.events
import document
import pytest
from carillon_sender import ApiError, Client, Gap, NoAnswer, Receipt, Retry, RoomEvent, types

from harness.server import unique

PAYLOAD = {"title": "Your order has shipped"}
FAST = Retry(first_s=0.01, longest_s=0.02)


@pytest.fixture(scope="module")
def connect(environment):
    """Makes clients, also ones that meet faults on their way."""
    made = []

    def connect(*faults, retry=FAST, **options):
        url = f"{environment['CARILLON_FAULTY']}/{','.join(faults)}~{unique('python')}" if faults else None
        made.append(Client(url or environment["CARILLON_URL"], environment["CARILLON_KEY"], retry=retry, **options))
        made[-1].seen = f"{url}/seen"
        return made[-1]

    yield connect
    for client in made:
        client.close()


@pytest.fixture
def api(connect):
    return connect()


def seen(client):
    """What the proxy saw of a client."""
    with urllib.request.urlopen(client.seen) as answer:
        return carillon_sender.client.json.load(answer)


@pytest.fixture(scope="module")
def openapi(server):
    with urllib.request.urlopen(f"{server.http}/openapi.json") as answer:
        return carillon_sender.client.json.load(answer)


def test_every_operation_is_in_the_document_and_the_other_way_round(openapi):
    source = inspect.getsource(carillon_sender.client) + inspect.getsource(carillon_sender.events)
    found = set(re.findall(r'"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"', source))
    assert found == document.operations(openapi)


def test_types_are_those_of_the_document(openapi):
    dictionaries = {name: value for name, value in vars(types).items() if typing.is_typeddict(value)}
    # Parts that are options of a method are no types of the document.
    for name in dictionaries.keys() - {"NotificationOptions", "LinkOptions"}:
        required, properties = document.members(openapi, name)
        assert dictionaries[name].__required_keys__ == required, name
        assert set(dictionaries[name].__annotations__) | inherited(dictionaries[name]) == properties, name
    words = {name: value for name, value in vars(types).items() if typing.get_origin(value) is typing.Literal}
    for name, value in words.items():
        assert set(typing.get_args(value)) == document.words(openapi, name), name
    assert len(dictionaries) > 20
    assert len(words) > 10


def inherited(kind):
    return kind.__required_keys__ | kind.__optional_keys__


def test_a_notification_is_sent_and_followed(api):
    with api.events(states=["acknowledged"]) as events:
        first = api.send("alice", payload=PAYLOAD, ttl=60, priority="high")
        assert first["to"] == "alice@localhost"
        receipt = next(event for event in events if event.notification["id"] == first["id"])
    assert isinstance(receipt, Receipt)
    assert receipt.id == events.last_id
    trace = api.notification(first["id"])
    assert trace == receipt.notification
    assert trace["acknowledged_by"] == "stream-management"
    assert trace in list(api.notifications(to="alice", states=["acknowledged"]))


def test_what_happens_in_rooms_is_told_to_who_asks(environment, carillon):
    with (
        Client(environment["CARILLON_URL"], environment["CARILLON_ADMIN_KEY"]) as admin,
        admin.events(types=["room_created", "room_message"]) as events,
    ):
        carillon("room", "create", "sdk-tea")
        carillon("room", "send", "sdk-tea", "The kettle is on")
        created, said = next(events), next(events)
    assert isinstance(created, RoomEvent)
    assert isinstance(said, RoomEvent)
    assert said.id == events.last_id
    assert (created.room["type"], created.room["room"]) == ("room_created", "sdk-tea@rooms.localhost")
    assert said.room["type"] == "room_message"
    # The text is for keys with scope `read_messages`.
    assert said.room["message"].keys() >= {"archive_id"}
    assert "body" not in said.room["message"]


def test_a_list_has_a_result_for_each(api):
    good, bad = api.send(["alice", "no such device"], payload=PAYLOAD)["results"]
    assert good["id"]
    assert bad["error"]["code"] == "invalid-jid"


def test_a_refusal_has_its_problem(api):
    with pytest.raises(ApiError) as refused:
        api.send("alice", payload=PAYLOAD, ttl=0)
    error = refused.value
    assert (error.status, error.code, error.pointer) == (422, "invalid-value", "/ttl")
    assert error.request_id in str(error)
    with pytest.raises(ApiError, match="unknown-notification"):
        api.notification("01KAG8X4RZ5T9V7Q2M3N6P8W0Y")


def test_a_cancelled_notification(api):
    device = api.enrol()
    sent = api.send(device["id"], payload=PAYLOAD)
    assert api.device(device["id"])["pending"] == 1
    assert api.cancel(sent["id"])["state"] == "cancelled"
    # The same request again has the same answer.
    assert api.cancel(sent["id"])["state"] == "cancelled"
    with api.events(states=["acknowledged"]) as events:
        sent = api.send("alice", payload=PAYLOAD)
        next(event for event in events if event.notification["id"] == sent["id"])
    with pytest.raises(ApiError, match="too-late") as refused:
        api.cancel(sent["id"])
    assert refused.value.problem["state"] == "acknowledged"


def test_many_are_sent_and_listed(api):
    device = api.enrol()["id"]
    wanted = ({"to": device if n != 700 else "no such device", "payload": {"n": n}} for n in range(1200))
    results = list(api.send_many(wanted))
    assert [result["line"] for result in results] == list(range(1, 1201))
    assert [result["line"] for result in results if result.get("error")] == [701]
    ids = [result["id"] for result in results if "id" in result]
    # More than a page of them.
    assert sorted(trace["id"] for trace in api.notifications(to=device)) == sorted(ids)


def test_a_lost_answer_does_not_send_twice(connect, api):
    device = api.enrol()["id"]
    faulty = connect("cut", "half")
    sent = faulty.send(device, payload=PAYLOAD)
    requests = seen(faulty)
    assert len(requests) == 3
    assert len({request["idempotency_key"] for request in requests}) == 1
    assert [trace["id"] for trace in api.notifications(to=device)] == [sent["id"]]


def test_lost_answers_of_a_batch_do_not_send_twice(connect, api):
    device = api.enrol()["id"]
    faulty = connect("half", "cut", "ok", "busy:0")
    results = list(faulty.send_many({"to": device, "payload": n} for n in range(600)))
    keys = [request["idempotency_key"] for request in seen(faulty)]
    assert len(keys) == 5
    assert [keys.count(key) for key in dict.fromkeys(keys)] == [3, 2]
    assert len({result["id"] for result in results}) == 600
    assert api.device(device)["pending"] == 600


def test_a_key_of_ones_own_outlives_the_client(connect, api):
    device = api.enrol()["id"]
    batch = [{"to": device, "payload": n} for n in range(3)]
    ids = [[line["id"] for line in connect().send_many(batch, idempotency_key=f"order-{device}")] for _ in range(2)]
    assert ids[0] == ids[1]
    sent = {connect().send(device, payload=PAYLOAD, idempotency_key=f"one-{device}")["id"] for _ in range(2)}
    assert len(sent) == 1
    assert api.device(device)["pending"] == 4


def test_threads_share_a_client(connect, api):
    device, shared = api.enrol()["id"], connect()
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        sent = list(threads.map(lambda n: shared.send(device, payload=n)["id"], range(200)))
    assert len(set(sent)) == api.device(device)["pending"] == 200


def test_it_comes_back_when_it_is_asked_to(connect):
    faulty = connect("busy:1", "unavailable")
    assert faulty.send("alice", payload=PAYLOAD)["id"]
    first, second, _ = (request["at"] for request in seen(faulty))
    assert second - first >= 1.0


def test_it_gives_up_in_the_end(connect):
    faulty = connect(*["unavailable"] * 9)
    with pytest.raises(ApiError) as refused:
        faulty.topics().__next__()
    assert refused.value.status == 503
    assert len(seen(faulty)) == FAST.attempts
    patient = connect("busy:100")
    with pytest.raises(ApiError) as refused:
        patient.own_key()
    assert refused.value.retry_after == 100
    assert len(seen(patient)) == 1


def test_what_is_not_safe_is_not_repeated(connect, api):
    device = api.enrol()["id"]
    attempts = [
        lambda client: client.enrol(),
        lambda client: client.rotate_secret(device),
        lambda client: client.create_invitation(),
    ]
    for attempt in attempts:
        faulty = connect("cut")
        with pytest.raises(NoAnswer):
            attempt(faulty)
        assert len(seen(faulty)) == 1
        busy = connect("busy:0")
        with pytest.raises(ApiError):
            attempt(busy)
        assert len(seen(busy)) == 1


def test_a_node_that_is_silent(connect):
    faulty = connect("hang", timeout_s=0.3)
    began = time.monotonic()
    assert faulty.own_key()["name"] == "sdk"
    assert time.monotonic() - began >= 0.3
    assert len(seen(faulty)) == 2


def test_a_deletion_whose_answer_is_lost(connect, api):
    name = unique("topic")
    api.create_topic(name)
    faulty = connect("cut")
    faulty.delete_topic(name)
    assert len(seen(faulty)) == 2
    with pytest.raises(ApiError, match="unknown-topic"):
        api.delete_topic(name)


def test_nobody_is_there():
    with pytest.raises(NoAnswer), Client("http://127.0.0.1:1", "crl_x", retry=FAST) as client:
        client.own_key()
    with pytest.raises(NoAnswer), Client("http://127.0.0.1:1", "crl_x", retry=FAST) as client:
        next(client.events())


def test_topics(api, connect):
    name = unique("weather / é ")
    topic = api.create_topic(name, title="Weather", max_items=2)
    assert topic["config"]["max_items"] == 2
    assert api.update_topic(name, max_items=3, title=None)["config"]["title"] == ""
    with pytest.raises(ApiError, match="already-exists"):
        api.create_topic(name, max_items=9)
    device = api.enrol()["id"]
    api.subscribe(device, name)
    assert api.subscriptions(device) == [name]
    assert list(api.subscribers(name)) == [f"{device}@localhost"]
    faulty = connect("cut")
    first = faulty.publish(name, payload={"sky": "clear"})
    second = api.publish(name, payload={"sky": "rain"}, id="latest")
    assert [item["id"] for item in api.items(name)] == [second["id"], first["id"]]
    assert api.items(name, id="latest")[0]["payload"] == {"sky": "rain"}
    api.retract(name, "latest")
    api.unsubscribe(device, name)
    assert api.subscriptions(device) == []
    assert api.topic(name)["figures"]["published"] >= 2
    assert name in [topic["name"] for topic in connect(page_size=1).topics()]
    api.delete_topic(name)


def test_devices(api, connect):
    enrolled = api.enrol(unique("panel"), secret="correct horse battery")
    id = enrolled["id"]
    assert enrolled["endpoints"]["websocket_url"]
    assert api.validate_secret(id, "correct horse battery")["valid"]
    api.disable_device(id)
    assert api.device(id)["state"] == "disabled"
    api.enable_device(id)
    assert api.rotate_secret(id)["secret"] != "correct horse battery"
    assert id in [device["id"] for device in connect(page_size=2).devices()]
    assert [presence["state"] for presence in api.presence(["alice", id])] == ["active", "offline"]
    api.delete_device(id)
    with pytest.raises(ApiError, match="unknown-device"):
        api.device(id)


def test_invitations_and_links(api):
    until = types.datetime.fromisoformat("2099-09-01T12:00:00+02:00")
    invitation = api.create_invitation(localpart=unique("dora"))
    assert invitation["uri"].startswith("xmpp:")
    assert invitation["id"] in [one["id"] for one in api.invitations()]
    api.delete_invitation(invitation["id"])
    url = f"https://example.com/{unique('offer')}"
    link = api.create_link(url, may_change=True, expires_at=until)
    assert link["expires_at"] == "2099-09-01T10:00:00.000Z"
    assert api.create_link(url) == link
    assert api.update_link(link["code"], url=f"{url}/2", expires_at=None)["url"] == f"{url}/2"
    assert [one["code"] for one in api.links(search=url)] == [link["code"]]
    api.delete_link(link["code"])
    assert api.link(link["code"])["removed_at"]


def test_events_go_on_behind_the_last_one(connect, api):
    device = api.enrol()["id"]
    faulty = connect("event", "cut", "busy:0", "event")
    with faulty.events(states=["cancelled"]) as events:
        ids = [api.send(device, payload=n)["id"] for n in range(4)]
        for id in ids:
            api.cancel(id)
        given = [next(events) for _ in ids]
    assert [receipt.notification["id"] for receipt in given] == ids
    assert [receipt.id for receipt in given] == sorted({receipt.id for receipt in given})
    requests = seen(faulty)
    assert len(requests) >= 4
    assert requests[0]["last_event_id"] is None
    # Each went on behind what had been given, and the next life of the program does so, too.
    assert [int(request["last_event_id"]) for request in requests[1:4]] == [given[0].id] * 3
    with api.events(states=["cancelled"], after=given[2].id) as events:
        assert next(events) == given[3]


def test_events_that_were_forgotten_are_a_gap(api):
    with api.events() as events:
        newest = events.last_id
    with api.events(after=newest + 1000) as events:
        assert next(events) == Gap(newest + 1000, newest + 1)


def test_a_stream_that_is_refused(environment, connect):
    with pytest.raises(ApiError, match="invalid-parameter"):
        connect().events(states=["no such state"])
    with pytest.raises(ApiError, match="unknown-key"), Client(environment["CARILLON_URL"], "crl_x") as stranger:
        stranger.events()

"""aioxmpp 0.13.3 as a device. See `harness/device.py` for what it says and hears."""

import asyncio
import json
import sys

import aioxmpp
import aioxmpp.connector
import aioxmpp.pubsub
import aioxmpp.security_layer
import OpenSSL.SSL


def say(**words):
    print(json.dumps(words), flush=True)


def security(orders):
    def context():
        context = OpenSSL.SSL.Context(OpenSSL.SSL.TLS_CLIENT_METHOD)
        context.load_verify_locations(orders["certificate"])
        return context

    return aioxmpp.make_security_layer(orders["password"], ssl_context_factory=context)


async def main():
    orders = json.loads(sys.argv[1])
    connector = aioxmpp.connector.XMPPOverTLSConnector if orders["direct_tls"] else aioxmpp.connector.STARTTLSConnector
    jid = aioxmpp.JID.fromstr(orders["jid"])
    where = [(orders["address"], orders["port"], connector())]
    client = aioxmpp.PresenceManagedClient(jid, security(orders), override_peer=where)
    pubsub = client.summon(aioxmpp.pubsub.PubSubClient)
    dispatcher = client.summon(aioxmpp.dispatcher.SimpleMessageDispatcher)

    def message(received):
        if received.body:
            reply = aioxmpp.Message(type_=received.type_, to=received.from_)
            reply.body[None] = f"echo {received.body.any()}"
            client.enqueue(reply)

    def item(_jid, node, item, **_):
        say(topic=node, item=item.registered_payload.json_data)

    dispatcher.register_callback(aioxmpp.MessageType.CHAT, None, message)
    pubsub.on_item_published.connect(item)
    async with client.connected():
        await pubsub.subscribe(aioxmpp.JID.fromstr(f"pubsub.{jid.domain}"), orders["topic"])
        say(online=str(client.local_jid))
        # The end of the input is the end of the device.
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())

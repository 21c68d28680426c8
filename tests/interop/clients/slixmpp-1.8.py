"""slixmpp 1.8.3 as a device: what Debian 12 has. See `harness/device.py` for what it says and hears."""

import asyncio
import json
import os
import ssl
import sys

from slixmpp import ClientXMPP

JSON = "{urn:xmpp:json:0}json"


def say(**words):
    print(json.dumps(words), flush=True)


class Device(ClientXMPP):
    def __init__(self, orders):
        super().__init__(orders["jid"], orders["password"])
        self.topic = orders["topic"]
        self.ssl_context = ssl.create_default_context(cafile=orders["certificate"])
        self.ssl_context.maximum_version = ssl.TLSVersion[orders["tls"]]
        self.register_plugin("xep_0060")
        self.register_plugin("xep_0199")
        self.add_event_handler("session_start", self.start)
        self.add_event_handler("message", self.message)
        self.add_event_handler("pubsub_publish", self.item)
        self.add_event_handler("disconnected", self.gone)
        self.add_event_handler("failed_auth", self.refused)
        self.refusals = []
        self.is_ending = False

    async def start(self, _):
        self.send_presence()
        await self["xep_0060"].subscribe(f"pubsub.{self.boundjid.domain}", self.topic)
        mechanism = self["feature_mechanisms"].mech.name
        say(online=str(self.boundjid), mechanism=mechanism, tls=self.socket.version(), refused=self.refusals)

    def refused(self, failure):
        # What was tried until now.
        tried = self["feature_mechanisms"].attempted_mechs - {name for name, _ in self.refusals}
        self.refusals += [(name, failure["condition"]) for name in tried]

    def gone(self, why):
        if not self.is_ending:
            say(disconnected=str(why))
            # A thread waits for the input.
            os._exit(1)

    def message(self, message):
        if message["type"] in ("chat", "normal") and message["body"]:
            message.reply(f"echo {message['body']}").send()

    def item(self, message):
        payload = message.xml.find(f".//{JSON}")
        say(topic=message["pubsub_event"]["items"]["node"], item=json.loads(payload.text))


async def main():
    orders = json.loads(sys.argv[1])
    device = Device(orders)
    device.connect(
        (orders["address"], orders["port"]), use_ssl=orders["direct_tls"], force_starttls=not orders["direct_tls"]
    )
    # The end of the input is the end of the device.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    device.is_ending = True
    await device.disconnect(wait=5)


asyncio.run(main())

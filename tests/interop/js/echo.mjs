// A client that sends back what it is sent: the other half of test_both_libraries.py. Ends when its input does.

import { Peer } from "./harness.mjs";

const [websocket, user, greets] = process.argv.slice(2);
const peer = await Peer.connect({ websocket }, user);
peer.xmpp.on("stanza", (stanza) => {
  const body = stanza.getChildText("body");
  if (stanza.is("message") && body) peer.chat(stanza.attrs.from, `echo: ${body}`);
});
if (greets) await peer.chat(greets, "hello from xmpp.js");
console.log(peer.jid);
process.stdin.resume();
process.stdin.on("end", () => peer.end());

import { Client, type Element, xml } from "@xmpp/client-core";
import bind2 from "@xmpp/client-core/src/bind2/bind2.js";
import fast from "@xmpp/client-core/src/fast/fast.js";
import iqCallee from "@xmpp/iq/callee.js";
import iqCaller from "@xmpp/iq/caller.js";
import middleware from "@xmpp/middleware";
import htSha256None from "@xmpp/sasl-ht-sha-256-none";
import sasl2 from "@xmpp/sasl2";
import streamFeatures from "@xmpp/stream-features";
import streamManagement from "@xmpp/stream-management";
import websocket from "@xmpp/websocket";
import SASLFactory from "saslmechanisms";

import { ScramSha256 } from "./scram.js";
import type { Token } from "./store.js";

/** What a client logs in with. */
export interface Credentials {
  username: string;
  password?: string;
  token?: Token | undefined;
}

export { Client, type Element, xml };

/**
 * The parts of xmpp.js that a device needs: WebSocket, SASL2 with SCRAM-SHA-256 and tokens, Bind 2 and stream management. The whole of it, the package
 * `@xmpp/client`, has TCP and DNS besides, which browsers have not.
 */
export function assemble(
  options: { service: string; domain: string },
  { isManaged, credentials, userAgent }: { isManaged: boolean; credentials: () => Promise<Credentials>; userAgent: () => Element },
) {
  const entity = new Client(options);
  websocket({ entity });
  const middle = middleware({ entity });
  const features = streamFeatures({ middleware: middle });
  const caller = iqCaller({ middleware: middle, entity });
  iqCallee({ middleware: middle, entity }).get("urn:xmpp:ping", "ping", () => ({}));
  const saslFactory = new SASLFactory();
  saslFactory.use(ScramSha256);
  const sasl = sasl2({ streamFeatures: features, saslFactory }, async (authenticate) => {
    await authenticate(await credentials(), ScramSha256.prototype.name, userAgent());
  });
  const tokens = fast({ sasl2: sasl, entity });
  sasl.setup({ fast: tokens });
  htSha256None(tokens.saslFactory);
  const bind = bind2({ sasl2: sasl, entity });
  // Without an older server's features: they are for servers that do not know SASL2.
  const management = isManaged ? streamManagement({ entity, middleware: middle, bind2: bind, sasl2: sasl }) : undefined;
  return { entity, iqCaller: caller, fast: tokens, streamManagement: management };
}

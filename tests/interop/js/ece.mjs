// An app that decrypts what it is pushed with the library http_ece: the other half of a test in test_push.py. Each line that it is given is a push and its app's
// keys, each line that it writes the plaintext.

import { createECDH } from "node:crypto";
import { createInterface } from "node:readline";

import ece from "http_ece";

for await (const line of createInterface({ input: process.stdin })) {
  const { body, key, auth } = JSON.parse(line);
  const privateKey = createECDH("prime256v1");
  privateKey.setPrivateKey(Buffer.from(key, "base64"));
  const plaintext = ece.decrypt(Buffer.from(body, "base64"), { version: "aes128gcm", privateKey, authSecret: Buffer.from(auth, "base64") });
  console.log(JSON.stringify(plaintext.toString("base64")));
}

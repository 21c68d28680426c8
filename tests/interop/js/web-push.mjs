// A sender with the library web-push: the other half of a test in test_web_push.py. Its first line is the key pair of the sender; then each line that it is
// given is a push, and each line that it writes what came of it.

import { createInterface } from "node:readline";

import webPush from "web-push";

console.log(JSON.stringify(webPush.generateVAPIDKeys()));
for await (const line of createInterface({ input: process.stdin })) {
  const { subscription, payload, options } = JSON.parse(line);
  const body = payload === null ? null : Buffer.from(payload, "base64");
  const answer = await webPush.sendNotification(subscription, body, options).catch((error) => error);
  console.log(JSON.stringify({ status: answer.statusCode, headers: answer.headers, error: answer.statusCode ? undefined : String(answer) }));
}

// A double of APNs for `bench/push`: takes every push, and says how long after its notification was accepted it came. Node's own HTTP/2.
import { createServer } from "node:http2";

const delayMs = Number(process.env.DELAY_MS ?? 0);
let count = 0, first = 0, last = 0, open = 0, openMax = 0;
const ids = new Set(), sessions = new Set();
const lateMs = [];

const server = createServer({ settings: { maxConcurrentStreams: 1000 } });
server.on("stream", (stream, headers) => {
    openMax = Math.max(openMax, ++open);
    const pieces = [];
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("close", () => open--);
    stream.on("end", () => {
        if (headers[":path"] === "/figures") {
            lateMs.sort((a, b) => a - b);
            const at = (part) => lateMs[Math.min(lateMs.length - 1, Math.floor(lateMs.length * part))];
            const seconds = (last - first) / 1000;
            const figures = { count, distinct: ids.size, connections: sessions.size, openMax, seconds, p50_ms: at(0.5), p99_ms: at(0.99), cpu_us: process.cpuUsage() };
            stream.respond({ ":status": 200 });
            stream.end(JSON.stringify(figures));
            return;
        }
        const now = Date.now(), told = JSON.parse(Buffer.concat(pieces).toString()).carillon;
        sessions.add(stream.session);
        first ||= now;
        last = now;
        count++;
        ids.add(headers["apns-id"]);
        lateMs.push(now - Date.parse(told.sent));
        const answer = () => { stream.respond({ ":status": 200 }, { endStream: true }); };
        if (delayMs) setTimeout(answer, delayMs); else answer();
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

"""A conversation as a page of the book shows it, held again with a real server.

A block is fenced as `transcript`. Lines begin with `C: ` (the client sends), `S: ` (the server sends; `…` is any element), `H: ` (somebody uses the
HTTP API: method, path, body) or `#` (words for the reader); an indented line goes on with the one before. What differs from
run to run (ids, nonces, times) is another value then, and the same one wherever the page has the same."""

import base64
import hmac
import json
import re
import xml.etree.ElementTree as ET

from .raw import CLIENT, SASL
from .scram import Scram

SASL2 = "{urn:xmpp:sasl:2}"
FAST = "{urn:xmpp:fast:0}"
# Their text is checked as what it is: see `prove`.
PROVED = [SASL + "challenge", SASL + "success", SASL2 + "challenge", SASL2 + "additional-data"]
WITHIN = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
STREAM_END = "</stream:stream>"
PING = "{urn:xmpp:ping}ping"
# What a server makes up, and when.
VARYING = [
    re.compile(pattern)
    for pattern in (
        r"[\w-]{24,}",
        r"[0-9a-f]+-[0-9a-f]+",
        r"kitchen@push\.example/panel/[\w-]{12}",
        r"\d{4}-\d\d-\d\dT[\d:.]+Z",
        r"ping-\d+",
    )
]


def blocks(page, language):
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def steps(block):
    """The lines of a conversation, as pairs of who and what."""
    found = []
    for line in block.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(" "):
            who, what = found.pop()
            found.append((who, f"{what} {line.strip()}"))
        else:
            who, what = line.split(": ", 1)
            found.append((who, what))
    return found


class Replay:
    """Conversations that know of each other: what one was given, the next may use."""

    def __init__(self, api, password):
        self.api, self.password = api, password
        # What the page calls it, and what it is called now.
        self.now = {}
        self.scram = None
        self.token = None

    async def play(self, raw, block):
        """One connection, on which nothing was said yet."""
        self.raw = raw
        for number, (who, what) in enumerate(steps(block), 1):
            try:
                await {"C": self.client, "S": self.server, "H": self.http}[who](what)
            except AssertionError as error:
                raise AssertionError(f"step {number}, {who}: {what}\n{error}") from None

    async def client(self, what):
        if "<stream:stream" in what:
            self.raw._restart()
        what = re.sub("(<auth .*?>)(.*?)(<)", self.begin_scram, what)
        what = re.sub("(mechanism='SCRAM-.*?<initial-response>)(.*?)(<)", self.begin_scram, what)
        what = re.sub("(mechanism='HT-.*?<initial-response>)(.*?)(<)", self.redeem, what)
        what = re.sub("(<response .*?>)(.*?)(<)", lambda m: m[1] + self.scram.last(self.challenge) + m[3], what)
        for page, now in self.now.items():
            what = what.replace(f"'{page}'", f"'{now}'")
        self.raw.send(what)

    def begin_scram(self, match):
        self.scram = Scram.of(match[2], self.password)
        return match[0]

    def redeem(self, match):
        user = base64.b64decode(match[2]).split(b"\0")[0]
        self.scram = None
        return match[1] + base64.b64encode(user + b"\0" + self.hashed(b"Initiator")).decode() + match[3]

    def hashed(self, role):
        return hmac.digest(self.token.encode(), role, "sha256")

    async def server(self, what):
        if "<stream:stream" in what:
            # Python's parser wants a whole document, and the header's end tag comes last.
            wanted = ET.fromstring(what + STREAM_END)
            await self.raw.header()
            return self.same(wanted, self.raw.root, children=False)
        if what == STREAM_END:
            return await self.raw.end_of_stream()
        if what == "…":
            return await self.raw.element()
        wanted = ET.fromstring(f"{WITHIN}{what}{STREAM_END}")[0]
        got = await self.raw.element()
        while is_ping(got) and not is_ping(wanted):
            # On a slow machine the server may ask earlier than the page has it.
            self.raw.send(f"<iq type='result' id='{got.get('id')}' to='{got.get('from')}'/>")
            got = await self.raw.element()
        assert got is not None, "the stream ended"
        self.prove(got)
        return self.same(wanted, got)

    def prove(self, got):
        """Remembers a challenge and a token, and has the server prove that it knows the secret."""
        if got.tag in (SASL + "challenge", SASL2 + "challenge"):
            self.challenge = got.text
        if got.tag == SASL + "success":
            self.scram.check(got.text)
        if got.tag == SASL2 + "success":
            data = got.findtext(SASL2 + "additional-data")
            if self.scram:
                self.scram.check(data)
            else:
                assert base64.b64decode(data) == self.hashed(b"Responder")
        if (token := got.find(f"{FAST}token")) is not None:
            self.token = token.get("token")

    async def http(self, what):
        method, path, *body = what.split(" ", 2)
        await self.api.ok(method, path, json.loads(body[0]) if body else None)

    def same(self, wanted, got, children=True):
        assert got.tag == wanted.tag, ET.tostring(got)
        assert set(got.keys()) == set(wanted.keys()), ET.tostring(got)
        for name, value in wanted.items():
            self.matches(value, got.get(name), got)
        if wanted.tag not in PROVED:
            self.matches((wanted.text or "").strip(), (got.text or "").strip(), got)
        if children:
            assert len(got) == len(wanted), ET.tostring(got)
            for a, b in zip(wanted, got, strict=True):
                self.same(a, b)

    def matches(self, page, now, where):
        page = self.now.get(page, page)
        if page == now:
            return
        varies = any(p.fullmatch(page) and p.fullmatch(now) for p in VARYING)
        assert varies, f"{now!r} and not {page!r} in {ET.tostring(where).decode()}"
        self.now[page] = now


def is_ping(element):
    return element is not None and element.tag == CLIENT + "iq" and element.find(PING) is not None

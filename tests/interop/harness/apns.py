"""The Apple Push Notification service: it checks requests as Apple says, and gives devices what they are sent."""

import json
import os
import time
import uuid

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from .http2_service import Http2Service
from .inbox import Inbox

TOPIC, TEAM, KEY_ID = "com.example.chat", "TEAM123456", "KEY1234567"


class Device:
    """An app on a device, and what was pushed to it."""

    def __init__(self, name):
        self.token = os.urandom(32).hex()
        self.pushes = Inbox(f"the device {name}")

    async def next(self, **wanted):
        """The next push whose `carillon` or alert has these members."""

        def fits(push):
            told = {**push.json["carillon"], **push.json["aps"].get("alert", {})}
            return all(told.get(name) == value for name, value in wanted.items())

        return await self.pushes.take(fits, f"a push {wanted}")


class Push:
    """A push that was taken."""

    def __init__(self, headers, body):
        self.headers = headers
        self.json = json.loads(body)
        self.at = time.monotonic()


class Apns(Http2Service):
    """APNs with one team, which has one key."""

    def __init__(self, with_tokens=True):
        super().__init__()
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.with_tokens = with_tokens
        self.devices = {}
        # What it answers instead of taking a push: a status, a reason, and more members and headers.
        self.refuse = lambda device: None
        # Tokens of the provider that are said to have expired, and all that came.
        self.expired = set()
        self.provider_tokens = set()

    def device(self, name):
        device = Device(name)
        self.devices[device.token] = device
        return device

    def key_file(self, folder, key=None):
        """As Apple gives it to its team."""
        pem = (key or self.key).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path = folder / "AuthKey.p8"
        path.write_bytes(pem)
        path.chmod(0o600)
        return path

    def settings(self, folder, app="chat", **more):
        """What a node is told of it, `__` for a dot."""
        settings = {
            "service": "apns",
            "url": self.url,
            "topic": TOPIC,
            "key_file": self.key_file(folder),
            "key_id": KEY_ID,
            "team_id": TEAM,
            **more,
        }
        return {f"push__apps__{app}__{name}": value for name, value in settings.items()}

    def answer(self, request):
        device = self.devices.get(request.path.removeprefix("/3/device/"))
        headers = request.headers
        assert request.method == "POST"
        assert request.path.startswith("/3/device/")
        if self.with_tokens:
            scheme, _, token = headers["authorization"].partition(" ")
            assert scheme == "bearer"
            if reason := self._bad_token(token):
                return (403, {"reason": reason})
        if refused := self.refuse(device):
            status, reason, *more = refused
            return (status, {"reason": reason, **(more[0] if more else {})}, more[1] if len(more) > 1 else {})
        if device is None:
            return (400, {"reason": "BadDeviceToken"})
        self._check(headers, request.body)
        device.pushes.put(Push(headers, request.body))
        return (200, None, {"apns-id": headers["apns-id"]})

    def _bad_token(self, token):
        self.provider_tokens.add(token)
        if token in self.expired:
            return "ExpiredProviderToken"
        head = jwt.get_unverified_header(token)
        try:
            claims = jwt.decode(token, self.key.public_key(), algorithms=["ES256"], options={"require": ["iss", "iat"]})
        except jwt.InvalidSignatureError:
            return "InvalidProviderToken"
        assert set(claims) == {"iss", "iat"}, claims
        assert (head["alg"], head["kid"], claims["iss"]) == ("ES256", KEY_ID, TEAM), (head, claims)
        assert time.time() - 3600 < claims["iat"] <= time.time() + 5
        return None

    def _check(self, headers, body):
        assert len(body) <= 4096
        assert headers["apns-topic"] == TOPIC
        assert headers["apns-push-type"] in ("alert", "background")
        assert headers["apns-priority"] in ("1", "5", "10")
        assert uuid.UUID(headers["apns-id"])
        assert headers["apns-expiration"].isdigit()
        assert len(headers.get("apns-collapse-id", "").encode()) <= 64

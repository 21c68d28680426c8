"""Firebase Cloud Messaging, and where Google grants access to it: they check requests as Google says."""

import json
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from .http2_service import Http2Service
from .inbox import Inbox

PROJECT, EMAIL = "project-1", "sender@project-1.iam.gserviceaccount.com"
SEND = f"/v1/projects/{PROJECT}/messages:send"
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


class Device:
    """An app on a device, and what was pushed to it."""

    def __init__(self, name):
        self.token = f"{name}:APA91b-x_y"
        self.pushes = Inbox(f"the device {name}")

    async def next(self, **wanted):
        """The next push that tells these members."""
        return await self.pushes.take(
            lambda push: all(push.told.get(name) == value for name, value in wanted.items()), f"a push {wanted}"
        )


class Push:
    """A message that was taken."""

    def __init__(self, message):
        self.message = message
        self.told = json.loads(message["data"]["carillon"])


class Fcm(Http2Service):
    """FCM with one project, which has one service account."""

    def __init__(self):
        super().__init__()
        self.key = rsa.generate_private_key(65537, 2048)
        self.devices = {}
        # What it answers instead of taking a push, as `answer` gives it.
        self.refuse = lambda token: None
        # What it answers to who asks for access.
        self.refuse_access = lambda: None
        self.expires_in = 3599
        # Access that was granted, in order; what of it is good.
        self.granted = []
        self.good = set()

    def device(self, name):
        device = Device(name)
        self.devices[device.token] = device
        return device

    def account_file(self, folder):
        """As the console of Firebase gives it."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "0123abcd",
            "private_key": pem,
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": f"{self.url}/token",
        }
        path = folder / "service-account.json"
        path.write_text(json.dumps(account))
        path.chmod(0o600)
        return path

    def settings(self, folder, app="droid"):
        settings = {"service": "fcm", "url": self.url, "service_account_file": self.account_file(folder)}
        return {f"push__apps__{app}__{name}": value for name, value in settings.items()}

    def answer(self, request):
        assert request.method == "POST"
        if request.path == "/token":
            return self.refuse_access() or self._grant(request)
        assert request.path == SEND, request.path
        scheme, _, access = request.headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        if access not in self.good:
            return error(401, "UNAUTHENTICATED")
        message = json.loads(request.body)["message"]
        if refused := self.refuse(message["token"]):
            return refused
        device = self.devices.get(message["token"])
        if device is None:
            return error(404, "NOT_FOUND", "UNREGISTERED")
        self._check(message)
        device.pushes.put(Push(message))
        return (200, {"name": f"projects/{PROJECT}/messages/{self.count}"})

    def _grant(self, request):
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        url = f"{self.url}/token"
        claims = jwt.decode(form["assertion"], self.key.public_key(), algorithms=["RS256"], audience=url)
        assert jwt.get_unverified_header(form["assertion"])["kid"] == "0123abcd"
        assert claims["iss"] == EMAIL
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        assert time.time() < claims["exp"] <= time.time() + 3605
        access = f"ya29.{len(self.granted)}"
        self.granted.append(access)
        self.good.add(access)
        return (200, {"access_token": access, "expires_in": self.expires_in, "token_type": "Bearer"})

    def _check(self, message):
        data, android = message["data"], message["android"]
        assert sum(len(name) + len(value.encode()) for name, value in data.items()) <= 4096
        assert android["priority"] in ("NORMAL", "HIGH")
        assert android["ttl"].endswith("s")
        assert 0 <= int(android["ttl"][:-1]) <= 28 * 86_400


def error(status, name, code=None, field=None, headers=None):
    """An error as Google's APIs have it."""
    details = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    if field:
        details.append({"@type": BAD_REQUEST, "fieldViolations": [{"field": field, "description": "no"}]})
    body = {"error": {"code": status, "message": "no", "status": name, "details": details}}
    return (status, body, headers or {})

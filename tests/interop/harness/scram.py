"""The client's side of SCRAM-SHA-256 and SCRAM-SHA-1 (RFC 5802, RFC 7677), with channel binding as one pleases."""

import base64
import hashlib
import hmac
import os


class Scram:
    """One exchange. `binding` is the type of channel binding and its data."""

    def __init__(self, user, password="secret", hash="sha256", gs2="n,,", binding=b""):
        self.password = password.encode()
        self.hash = hash
        self.gs2 = gs2
        self.binding = binding
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.bare = f"n={user},r={self.nonce}"

    @classmethod
    def of(cls, first, password, **options):
        """The exchange that begins with this message."""
        bare = base64.b64decode(first).decode().removeprefix("n,,")
        user, nonce = bare.removeprefix("n=").split(",r=")
        scram = cls(user, password, **options)
        scram.nonce, scram.bare = nonce, bare
        return scram

    def first(self):
        return _b64((self.gs2 + self.bare).encode())

    def last(self, challenge):
        """The answer to the server's first message."""
        server_first = base64.b64decode(challenge).decode()
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        assert parts["r"].startswith(self.nonce)
        salted = hashlib.pbkdf2_hmac(self.hash, self.password, base64.b64decode(parts["s"]), int(parts["i"]))
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self.hash, client_key).digest()
        without_proof = f"c={_b64(self.gs2.encode() + self.binding)},r={parts['r']}"
        message = f"{self.bare},{server_first},{without_proof}".encode()
        proof = bytes(a ^ b for a, b in zip(client_key, self._hmac(stored_key, message), strict=True))
        self.signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return _b64(f"{without_proof},p={_b64(proof)}".encode())

    def check(self, final):
        """That the server knows the password, too."""
        assert base64.b64decode(final) == b"v=" + _b64(self.signature).encode()

    def _hmac(self, key, data):
        return hmac.new(key, data, self.hash).digest()


def _b64(data):
    return base64.b64encode(data).decode()

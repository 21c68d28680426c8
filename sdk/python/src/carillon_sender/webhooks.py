"""Requests that a node makes to webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import BadSignature

TOLERANCE_S = 300


def verify_webhook(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> dict[str, Any]:
    """What a request to a webhook says, or `BadSignature`.

    `body` is as it came, before anything parsed it. While a secret is being changed, give the new one and the old one. The names of headers
    may be in any case. Signatures are compared in constant time; one that is older than `tolerance_s` seconds, or as far ahead, counts as none.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp, signatures = (given[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        age = abs((time.time() if now is None else now) - int(timestamp))
    except (KeyError, ValueError):
        raise BadSignature("the headers of a webhook are not there") from None
    if age > tolerance_s:
        raise BadSignature(f"the request was signed {age:.0f} seconds ago, or ahead")
    signed = f"{id}.{timestamp}.".encode() + body
    expected = [_sign(secret, signed) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    # All are compared, so that the time does not tell which one was right.
    matches = [hmac.compare_digest(one, given.encode()) for one in expected for given in signatures.split()]
    if not any(matches):
        raise BadSignature("no signature is by the webhook's secret")
    said: dict[str, Any] = json.loads(body)
    return said


def _sign(secret: str, signed: bytes) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    # An empty secret is one that somebody forgot to set: anyone could sign with it.
    if not key:
        raise ValueError("the secret of a webhook is `whsec_` and Base64")
    return b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))

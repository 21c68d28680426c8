"""A client for those who send with Carillon: notifications, topics, devices, links, invitations, receipts and webhooks.

from carillon_sender import Client

with Client("https://push.example.com", key="crl_…") as carillon:
    sent = carillon.send("alice", payload={"title": "Your order has shipped"}, ttl=86400)
    print(carillon.notification(sent["id"])["state"])
"""

from . import types
from .client import Client
from .errors import ApiError, BadSignature, CarillonError, NoAnswer
from .events import Event, Events, Gap, Lagged, Receipt, RoomEvent
from .retry import Retry
from .webhooks import verify_webhook

__version__ = "0.1.0"
__all__ = [
    "ApiError",
    "BadSignature",
    "CarillonError",
    "Client",
    "Event",
    "Events",
    "Gap",
    "Lagged",
    "NoAnswer",
    "Receipt",
    "Retry",
    "RoomEvent",
    "types",
    "verify_webhook",
]

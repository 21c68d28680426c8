"""Accounts without a session, whose apps are woken by APNs: each notification that was accepted for one of them is pushed, and hardly ever twice."""

import asyncio
import collections
import json
import pathlib
import time

from harness.apns import Apns

from .load import Provider
from .pace import pause, pause_unless

ACCOUNTS = 20
SETTINGS = {
    # Longer than a process is stopped.
    "push__timeout_ms": 10_000,
}
# In which ways APNs fails.
FAILURES = ("does not answer", "is unavailable", "is busy", "goes away", "loses its connections")
SETTLE_S = 40


class Service(Apns):
    """APNs, which counts how often it took the push of each notification."""

    def __init__(self):
        super().__init__()
        self.taken = collections.Counter()
        self.is_silent = False

    def answer(self, request):
        if self.is_silent:
            return None
        answer = super().answer(request)
        if answer[0] == 200:
            self.taken[json.loads(request.body)["carillon"]["payload"]["p"]] += 1
        return answer

    def fail(self, how):
        """Fails from now on, or for a moment."""
        match how:
            case "does not answer":
                self.is_silent = True
            case "is unavailable":
                self.refuse = lambda device: (503, "ServiceUnavailable")
            case "is busy":
                self.refuse = lambda device: (429, "TooManyRequests", {}, {"retry-after": "1"})
            case "goes away":
                self.go_away()
            case "loses its connections":
                self.drop()

    def recover(self):
        self.is_silent = False
        self.refuse = lambda device: None


class Sleepers(Provider):
    """Sends notifications to accounts that are never there."""

    def __init__(self, node, ledger, random, rate):
        super().__init__(node, ledger, random, "sleepers", [], rate)
        self.every_s = 1 / rate
        self.accounts = [f"sleeper{number}@localhost" for number in range(ACCOUNTS)]
        # Those that were accepted: their ids.
        self.ids = []

    async def prepare(self, folder):
        """Starts APNs, and has the node know of it from its start."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.apns = await Service.start()
        self.node.settings |= SETTINGS | self.apns.settings(folder)

    async def register(self):
        for jid in self.accounts:
            token = self.apns.device(jid).token
            for path, body in (
                ("/v1/admin/accounts", {"jid": jid, "password": "secret"}),
                (
                    "/v1/push/registrations",
                    {"account": jid, "node": "phone", "shown": "whole", "app": {"name": "chat", "token": token}},
                ),
            ):
                answer = await self.node.http.post(path, json=body)
                assert answer.status_code == 201, f"{path}: {answer.text}"

    async def run(self, stopped):
        while not stopped.is_set():
            self.requests += 1
            body = {
                "to": self.random.choice(self.accounts),
                "audience": "always",
                "ttl": 3600,
                "payload": {"p": len(self.ids)},
            }
            answer = await self._until_answered("/v1/notifications", content=json.dumps(body))
            if answer.status_code != 202:
                raise AssertionError(f"a notification was refused: {answer.text}")
            self.ids.append(answer.json()["id"])
            await pause_unless(stopped, self.every_s)

    async def settle(self):
        """Waits until all of them were pushed, and ends them, since nobody fetches them. What was not pushed within the time is lost."""
        ends = time.monotonic() + SETTLE_S
        while self.missing() and time.monotonic() < ends:
            await pause(0.1)
        # What would be pushed again after the last fault has been by now.
        await pause(1)
        for number in self.missing():
            trace = (await self.node.http.get(f"/v1/notifications/{self.ids[number]}")).json()
            self.ledger.wrong("unpushed", f"{self.ids[number]} was accepted, and never pushed: {trace}")
        room = asyncio.Semaphore(16)

        async def end(id):
            async with room:
                await self.node.http.delete(f"/v1/notifications/{id}")

        await asyncio.gather(*(end(id) for id in self.ids))

    def missing(self):
        return [number for number in range(len(self.ids)) if not self.apns.taken[number]]

    def doubled(self):
        """Pushes beyond one for each notification."""
        return sum(count - 1 for count in self.apns.taken.values())

    def audit(self, disturbed):
        """Whether there are more of those than faults that may have made one."""
        if self.doubled() > disturbed:
            self.ledger.wrong("doubled", f"{self.doubled()} pushes were sent twice, by {disturbed} faults")

    async def close(self):
        await self.apns.close()

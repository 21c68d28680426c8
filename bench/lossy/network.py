"""A network that is slow and loses packets, between two network namespaces: two TUN devices with a program between them.

`network.py DELAY_MS LOSS SEED` makes the namespaces `lossy-near` (10.99.0.1) and `lossy-far` (10.99.0.2), says `ready`, and carries packets
until its input ends; each takes DELAY_MS, and the share LOSS of them never arrives. It says how many there were. It needs root and /dev/net/tun.
"""

import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
SIDES = {"lossy-near": "10.99.0.1", "lossy-far": "10.99.0.2"}


def ip(*arguments, check=True):
    subprocess.run(["ip", *arguments], check=check, stderr=None if check else subprocess.DEVNULL)


def device(number, name, address):
    """A TUN device in a namespace of its own; its descriptor stays here."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    link = f"lossy{number}"
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH14x", link.encode(), IFF_TUN | IFF_NO_PI))
    ip("netns", "delete", name, check=False)
    ip("netns", "add", name)
    ip("link", "set", link, "netns", name)
    ip("-n", name, "address", "add", f"{address}/24", "dev", link)
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "set", link, "up", "txqueuelen", "10000")
    return descriptor


def carry(ends, delay, loss, chance):
    """Carries packets until the input ends; how many there were, and how many were lost."""
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    under_way, order = [], itertools.count()
    carried = lost = 0
    while True:
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, _, to, packet = heapq.heappop(under_way)
            try:
                os.write(to, packet)
            except OSError:
                lost += 1
        wait = max(under_way[0][0] - time.monotonic(), 0) if under_way else None
        ready, _, _ = select.select([*ends, sys.stdin], [], [], wait)
        if sys.stdin in ready and not sys.stdin.read(1):
            return carried, lost
        for end in ready:
            if end == sys.stdin:
                continue
            for _ in range(64):
                try:
                    packet = os.read(end, 65536)
                except BlockingIOError:
                    break
                carried += 1
                if chance.random() < loss:
                    lost += 1
                else:
                    heapq.heappush(under_way, (time.monotonic() + delay, next(order), other[end], packet))


def main():
    delay_ms, loss, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    ends = [device(number, name, address) for number, (name, address) in enumerate(SIDES.items())]
    try:
        print("ready", flush=True)
        carried, lost = carry(ends, delay_ms / 1000, loss, random.Random(seed))
        print(f"{carried} packets, {lost} lost", flush=True)
    finally:
        for name in SIDES:
            ip("netns", "delete", name, check=False)


if __name__ == "__main__":
    main()

"""Ports for programs that cannot be told to find one themselves."""

import itertools
import os
import socket

# Below the ports that the system gives to whoever asks for any, so that no connection is given one in the meantime.
FIRST, COUNT = 10_000, 20_000
# Two processes of a test run begin at different places.
_numbers = itertools.count(os.getpid() * 64)


def free_port():
    """A port on which nobody listens, at no address of this machine."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    for number in itertools.islice(_numbers, COUNT):
        port = FIRST + number % COUNT
        try:
            with socket.create_server(("", port), family=family, dualstack_ipv6=both):
                return port
        except OSError:
            continue
    raise AssertionError("no port is free")

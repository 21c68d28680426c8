"""What stands in the place of a new binary, and takes over only in part: MODE says how far it comes."""

import json
import os
import socket
import struct
import sys
import threading

MODE = "MODE_OF_THE_TEST"
HELLO, CHECKED, REFUSED, END, READY = 1, 2, 3, 7, 8


def hang():
    # Until it is killed.
    threading.Event().wait()


def main():
    if MODE == "ends at once":
        sys.exit("this is no node")
    if MODE == "hangs at once":
        hang()
    node = socket.socket(fileno=os.dup(0))
    if MODE == "garbage":
        node.sendall(b"\xff" * 100)
        hang()
    kind, hello = receive(node)
    assert kind == HELLO, kind
    if MODE == "refuses":
        say(node, REFUSED, {"why": f"release {hello['release']} is not for me"})
        hang()
    say(node, CHECKED, {"release": "9.9.9", "pid": os.getpid(), "cell": MODE != "knows no cells"})
    if MODE == "ends when it is ready to take over":
        return
    if MODE == "hangs when it is ready to take over":
        hang()
    while True:
        kind, _ = receive(node)
        if kind == END:
            break
        if MODE == "ends among the sessions" and kind == 6:
            return
    if MODE == "ends with all sessions":
        return
    if MODE == "ends when it may go on":
        say(node, READY, {})
        receive(node)
        return
    if MODE == "cannot read the sessions":
        say(node, REFUSED, {"why": "these are no sessions"})
    hang()


def exactly(node, count):
    data = b""
    while len(data) < count:
        part = node.recv(count - len(data))
        if not part:
            sys.exit("the node has ended")
        data += part
    return data


def receive(node):
    kind, length, descriptors = struct.unpack(">BII", exactly(node, 9))
    content = exactly(node, length)
    while descriptors > 0:
        # It keeps none of them open that it was given.
        _, given, _, _ = socket.recv_fds(node, 1, 200)
        for descriptor in given:
            os.close(descriptor)
        descriptors -= len(given)
    return kind, json.loads(content) if content[:1] == b"{" else content


def say(node, kind, content):
    content = json.dumps(content).encode()
    node.sendall(struct.pack(">BII", kind, len(content), 0) + content)


main()

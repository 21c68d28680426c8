"""Modules in WebAssembly, byte by byte."""


def section(number, content):
    return bytes([number, len(content)]) + content


def module(body):
    """A module whose `submit_message` has this code."""
    code = bytes([0, *body, 0x0B])
    return b"".join(
        [
            b"\0asm\1\0\0\0",
            section(1, bytes([1, 0x60, 0, 1, 0x7F])),
            section(3, bytes([1, 0])),
            section(5, bytes([1, 0, 1])),
            section(7, bytes([2, 6]) + b"memory" + bytes([2, 0, 14]) + b"submit_message" + bytes([0, 0])),
            section(10, bytes([1, len(code)]) + code),
        ]
    )


PASS = module([0x41, 0])
DROP = module([0x41, 1])
TRAP = module([0x00])

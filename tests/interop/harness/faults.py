"""Faults of the disk under the store of a node, and of the clock of a shard, to be switched on and off while it runs."""

import mmap
import pathlib
import struct
import subprocess

SOURCE = pathlib.Path(__file__).parent / "faulty.c"
FIELDS = ["read_errno", "write_errno", "sync_errno", "sync_ms", "shard_clock_errno", "met"]


class Faults:
    """What `faulty.c` does in the nodes that are started with this environment; nothing at first."""

    def __init__(self, folder):
        library, path = folder / "faulty.so", folder / "faults"
        command = ["cc", "-O1", "-fPIC", "-shared", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
        built = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert built.returncode == 0, built.stderr
        path.write_bytes(bytes(4 * len(FIELDS)))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 4 * len(FIELDS))
        self.environment = {"LD_PRELOAD": str(library), "CARILLON_TEST_FAULTS": str(path)}

    def set(self, **fields):
        """Has these faults from now on, and no others; how many calls met one so far."""
        met = self.met
        values = {**fields, "met": met}
        self._shared[:] = struct.pack(f"{len(FIELDS)}i", *(values.get(field, 0) for field in FIELDS))
        return met

    @property
    def met(self):
        """How many calls failed or waited."""
        return struct.unpack(f"{len(FIELDS)}i", self._shared[:])[FIELDS.index("met")]

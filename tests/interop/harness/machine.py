"""A copy of this machine to install packages on: its files under an overlay, in a mount namespace of its own."""

import pathlib
import subprocess

# Nothing of it is left when this process ends, however that ends: then its standard input is closed.
RUN = """
set -e
mount -t tmpfs carillon-test "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" carillon-test "$1/root"
mount --rbind /proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs carillon-test "$1/root/run"
echo ready
read -r _ || true
"""


class Machine:
    """What is written there is in memory. No service manager runs on it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", RUN, "sh", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = self._holder.stdout.readline()
        if said != "ready\n":
            self.end()
            raise OSError(f"no copy of this machine can be made: {said.strip()}")
        self.inside = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt"]
        self.root = f"{self.folder}/root"

    def command(self, *words, user=None):
        """The command that runs another one there."""
        as_user = [f"--userspec={user}"] if user else []
        return [*self.inside, "chroot", *as_user, self.root, *map(str, words)]

    def run(self, *words, timeout=60, **options):
        """Runs a command there to its end."""
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            **options,
        )

    def ok(self, *words, **options):
        """Runs a command that must succeed; what it prints."""
        done = self.run(*words, **options)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def written(self):
        """The paths of everything that was written since it was made."""
        found = subprocess.run(
            [*self.inside, "find", f"{self.folder}/upper", "-printf", "/%P\n"],
            capture_output=True,
            text=True,
            check=True,
        )
        return set(found.stdout.splitlines())

    def end(self):
        self._holder.stdin.close()
        self._holder.wait()

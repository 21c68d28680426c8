"""PostgreSQL for nodes of a test run: Debian's, in a temporary folder, on a Unix socket, as a user without privileges.

`STORE=postgresql` has every node that is started keep its data there, in a database of its own.
"""

import atexit
import functools
import itertools
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

from .ports import free_port

WANTED = os.environ.get("STORE") == "postgresql"
START_S = 30
# The server ends when this process does, however that ends: then its standard input is closed.
RUN = """
programs=$1 folder=$2; shift 2
"$programs/postgres" -D "$folder/data" -k "$folder" -h '' -F -c max_locks_per_transaction=256 -c max_connections=300 "$@" \\
    >>"$folder/log" 2>&1 &
pid=$!; echo $pid; read -r _; kill -INT $pid; wait $pid
"""

_numbers = itertools.count(1)


class Postgres:
    """A running server, or a standby of one. What it writes survives its own death; it need not survive a loss of power.

    One that is `secured` by an authority is reached over TCP, too, as `localhost` with TLS, by whoever has a certificate of that authority for the
    name of the role, and its password.
    """

    def __init__(self, primary=None, secured=None):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        assert found, "the Debian package postgresql is not installed: tests/interop/setup does it"
        self.programs = found[-1].parent
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="carillon-pg-"))
        self._user, self._arguments, self._environment = {}, [], os.environ | {"LC_ALL": "C"}
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            self._user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        data = str(self.folder / "data")
        if primary:
            place = ["-h", str(primary.folder), "-U", "postgres", "-D", data]
            self._run("pg_basebackup", "--no-sync", "--write-recovery-conf", "--checkpoint=fast", *place)
        else:
            self._run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "-D", data)
        if secured:
            self._secure(secured)
        self._shell = None
        self.start()

    def _secure(self, authority):
        """Over TCP it speaks TLS alone."""
        self.port = free_port()
        certificate, key = authority.issue("localhost")
        for name, content in {
            "server.crt": certificate.read_text(),
            "server.key": key.read_text(),
            "authority.crt": authority.file.read_text(),
            "pg_hba.conf": "local all all trust\nhostssl all all all scram-sha-256 clientcert=verify-full\n",
        }.items():
            file = self.folder / "data" / name
            file.write_text(content)
            file.chmod(0o600)
            self.give(file)
        self._arguments = ["-h", "127.0.0.1", "-p", str(self.port), "-c", "ssl=on", "-c", "ssl_ca_file=authority.crt"]
        self._environment["PGPORT"] = str(self.port)

    def start(self):
        """Starts the server, and waits until it takes connections."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", RUN, "sh", str(self.programs), str(self.folder), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.folder,
            env=self._environment,
            **self._user,
        )
        self.pid = int(self._shell.stdout.readline())
        ready = [str(self.programs / "pg_isready"), "-q", "-h", str(self.folder), "-t", "1"]
        for _ in range(START_S * 50):
            if subprocess.run(ready, check=False, env=self._environment).returncode == 0:
                return
            try:
                self._shell.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"PostgreSQL does not start:\n{(self.folder / 'log').read_text()}")

    def stop(self, how=signal.SIGINT):
        """Ends the server: SIGINT ends its sessions first (`fast`), SIGQUIT nothing (`immediate`), after which it recovers from its log."""
        os.kill(self.pid, how)
        self._shell.stdin.close()
        self._shell.wait()

    def end(self):
        """Ends the server and forgets everything."""
        if self._shell.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self, name=None):
        """Makes a database; its URL."""
        name = name or f"node_{next(_numbers)}"
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE template0', "postgres")
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def give(self, folder):
        """Makes a folder the server's own."""
        if self._user:
            os.chown(folder, self._user["user"], self._user["group"])

    def sql(self, statement, database):
        """Runs a statement; what it gives, a line for each row."""
        return self._run("psql", *self._place(database), "-c", statement)

    def session(self, database):
        """A session that takes statements from its standard input, and ends with it."""
        return subprocess.Popen(
            [str(self.programs / "psql"), *self._place(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def _place(self, database):
        return ["-h", str(self.folder), "-U", "postgres", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1"]

    def _run(self, program, *arguments):
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            **self._user,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout


@functools.cache
def postgres():
    """The server of this process."""
    server = Postgres()
    atexit.register(server.end)
    return server


@functools.cache
def url_for(data):
    """The database of the node with this data folder, made when it is first asked for."""
    return postgres().database()


def name_of(url):
    """The name of a database."""
    return url.split("@/")[1].partition("?")[0]

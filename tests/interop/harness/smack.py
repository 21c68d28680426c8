"""Smack's integration tests, run by Java against a server of their own; how each of them ended."""

import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys

from .server import Server

HERE = pathlib.Path(__file__).parents[1]
# `setup` puts it beside the environment that this runs in.
JARS = pathlib.Path(sys.prefix).parent / "smack"
MAIN = "org.igniterealtime.smack.inttest.SmackIntegrationTestFramework"
DOMAIN = "smack.example"
# Smack knows no other ports: it is given an address, and finds WebSockets at `https://DOMAIN/.well-known/host-meta`.
C2S, HTTPS = 5222, 443
RUN_S = 900
# Smack's own event loop, whose TLS handshakes hang now and then (docs/smack.md): then all of the run ends.
MODULAR = ("modular", "modular-nocompress")
WEBSOCKETS = ("modular-websocket-okhttp", "modular-websocket-java11")
# Classes that do not run; docs/smack.md says why. Smack takes a method here for its whole class.
DISABLED = (
    "smack.c2s.ModularXmppClientToServerConnectionLowLevelIntegrationTest",
    "smackx.filetransfer.FileTransferIntegrationTest",
    "smackx.omemo.MessageEncryptionIntegrationTest",
    "smackx.omemo.OmemoMamDecryptionTest",
    "smackx.omemo.ReadOnlyDeviceIntegrationTest",
    "smackx.omemo.SessionRenegotiationIntegrationTest",
)
PASSED, FAILED, IMPOSSIBLE = "passed", "failed", "not possible"


def why_not():
    """Why the tests cannot run here, if they cannot."""
    if shutil.which("java") is None:
        return "there is no Java: tests/interop/setup installs it from Debian"
    if not any(JARS.glob("smack-integration-test-*.jar")):
        return "Smack is not installed: tests/interop/setup fetches it by Maven"
    return None


class Smack:
    """A server for the tests, and a way to run them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.runs = 0
        self.address = _free_address()
        self.websockets = _may_listen(self.address, HTTPS)
        certificate, key = self._certificate()
        upload = f"https://upload.{DOMAIN}"
        self.hosts = self.folder / "hosts"
        self.hosts.write_text(
            f"{self.address} {DOMAIN}\n{self.address} upload.{DOMAIN}\n127.0.0.1 localhost {socket.gethostname()}\n"
        )
        files = _free_port(self.address)
        self.server = Server(
            self.folder,
            domain=DOMAIN,
            listen__address=f'["{self.address}"]',
            c2s__port=C2S,
            websocket__port=HTTPS if self.websockets else 0,
            websocket__tls="true",
            https__port=files,
            tls__certificate=certificate,
            tls__key=key,
            upload__url=f"{upload}:{files}",
            registration__in_band="true",
            archive__enabled="true",
            # Smack removes its accounts at the end, and then waits ten seconds for closing tags that it was sent (docs/smack.md).
            registration__account_management="false",
            # Each test has accounts of its own, all from one address.
            limits__registrations_per_address=0,
            # One connection, which never logs in, registers them all.
            timeouts__auth_ms="1h",
        )

    def run(self, *tests):
        """Runs these tests, `CLASS` or `CLASS.METHOD`, or all but those that are disabled; what came of each, and why if it did not pass."""
        command = ["java", f"-Djdk.net.hosts.file={self.hosts}"]
        command += [f"-Djavax.net.ssl.{key}={value}" for key, value in self._trust().items()]
        # A line of the log is the time, its level and its message.
        command += ["-Djava.util.logging.SimpleFormatter.format=%1$tT.%1$tL %4$s %5$s%6$s%n"]
        command += ["-Dfile.encoding=UTF-8", "-Duser.language=en"]
        # Smack looks for its settings in a file of this name in the working directory.
        shutil.copy(HERE / "smack/properties", self.folder / "properties")
        settings = {"service": DOMAIN, "host": self.address}
        settings |= {"enabledTests": ",".join(tests)} if tests else {"disabledTests": ",".join(DISABLED)}
        settings["disabledConnections"] = ",".join(MODULAR if self.websockets else MODULAR + WEBSOCKETS)
        command += [f"-Dsinttest.{key}={value}" for key, value in settings.items()]
        command += [f"-Dsinttest.{key}={value}" for key, value in _wanted().items()]
        command += ["-cp", str(JARS / "*"), MAIN]
        self.runs += 1
        self.log = self.folder / f"smack-{self.runs}.log"
        with self.log.open("wb") as log:
            done = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=RUN_S, check=False
            )
        text = self.log.read_text(errors="replace")
        # 0: none failed; 2: some did.
        is_whole = done.returncode in (0, 2) and "] finished: " in text
        assert is_whole, f"Smack ended with {done.returncode}:\n{text[-20000:]}"
        return results(text)

    def _certificate(self):
        """The server's certificate, which is for the domain and for the hosts of its services."""
        certificate, key = self.folder / "tls.crt", self.folder / "tls.key"
        names = f"subjectAltName=DNS:{DOMAIN},DNS:*.{DOMAIN}"
        made = ("-days", "2", "-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={DOMAIN}", "-addext", names)
        kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        subprocess.run(["openssl", "req", "-x509", *kind, *made], check=True, capture_output=True)
        return certificate, key

    def _trust(self):
        """What Java trusts: this certificate and no other."""
        store, password = self.folder / "trust.p12", "only-public"
        made = ("-file", str(self.folder / "tls.crt"), "-keystore", str(store), "-storepass", password)
        kind = ("-storetype", "PKCS12", "-noprompt", "-alias", "server")
        if not store.exists():
            subprocess.run(["keytool", "-importcert", *kind, *made], check=True, capture_output=True)
        return {"trustStore": store, "trustStorePassword": password, "trustStoreType": "PKCS12"}

    def end(self):
        """Ends the server, which fails if its log has errors."""
        self.server.end()


TIME = r"[\d:.]{12}"
# `14:35:20.123 INFO EntityCapsTest.testPreventDisco (LowLevel, tcp) ✔`
TEST = r"(?P<test>\w+\.\w+) \((?:Normal|LowLevel|SpecificLowLevel)(?:, (?P<connection>[\w-]+))?\)"
ENDS = {
    PASSED: re.compile(rf"^{TIME} INFO {TEST} ✔$", re.MULTILINE),
    FAILED: re.compile(rf"^{TIME} SEVERE {TEST} failed: (?P<why>.*)$", re.MULTILINE),
    IMPOSSIBLE: re.compile(rf"^{TIME} INFO Could not run {TEST} because: (?P<why>.*)$", re.MULTILINE),
}
IMPOSSIBLE_CLASS = re.compile(rf"^{TIME} INFO Could not run (?P<test>[\w.]+) because: (?P<why>.*)$", re.MULTILINE)


def results(log):
    """What the log's last part says of each test: `CLASS.METHOD`, with its connection if it runs with several."""
    found = {}
    for end, pattern in ENDS.items():
        for match in pattern.finditer(log):
            name = match["test"] + (f" ({match['connection']})" if match["connection"] else "")
            found[name] = (end, match.groupdict().get("why") or "")
    for match in IMPOSSIBLE_CLASS.finditer(log):
        found[match["test"].rpartition(".")[2]] = (IMPOSSIBLE, match["why"])
    return found


def _wanted():
    """Settings for those who look at a test by hand: `SMACK_DEBUGGER=console` shows every stanza."""
    debugger = os.environ.get("SMACK_DEBUGGER")
    return {"debugger": debugger} if debugger else {}


def _free_address():
    """An address of this machine that nobody else listens at: all of 127.0.0.0/8 is."""
    for _ in range(100):
        address = f"127.{random.randint(64, 127)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        if _may_listen(address, C2S):
            return address
    raise AssertionError("no address of 127.0.0.0/8 has port 5222 free")


def _may_listen(address, port):
    try:
        socket.create_server((address, port)).close()
    except OSError:
        return False
    return True


def _free_port(address):
    with socket.create_server((address, 0)) as listener:
        return listener.getsockname()[1]


def main(folder, *tests):
    """Prints what comes of these tests, or of all: `python -m harness.smack FOLDER [TEST…]`, in tests/interop."""
    smack = Smack(folder)
    try:
        found = smack.run(*tests)
    finally:
        smack.end()
    for test, (end, why) in sorted(found.items()):
        print(f"| `{test}` | {end} | {why} |")


if __name__ == "__main__":
    main(*sys.argv[1:])

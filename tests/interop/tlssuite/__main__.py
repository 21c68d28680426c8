"""Runs tlsfuzzer's scripts for TLS 1.3 against the direct TLS port of a node and its HTTPS port, and prints a table.

tlsfuzzer is in no registry of packages: give the folder of a checkout of github.com/tlsfuzzer/tlsfuzzer. It wants the packages tlslite-ng (in the
version of its requirements.txt) and ecdsa, in this Python or in the one that --python names.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from harness.server import BINARY, Server

from .expected import ARGUMENTS, ECDSA, EXPECTED, LEFT_OUT

PORTS = {"c2s_tls": "XMPP, direct TLS", "https": "HTTPS"}
SCRIPT_S = 600
FIGURE = re.compile(r"^(TOTAL|SKIP|PASS|XFAIL|FAIL|XPASS): (\d+)$", re.MULTILINE)
NAMED = re.compile(r"^\t(.*)$", re.MULTILINE)


def arguments():
    parser = argparse.ArgumentParser(prog="python -m tlssuite", description=__doc__)
    parser.add_argument("checkout", type=pathlib.Path, help="the folder of tlsfuzzer")
    parser.add_argument("scripts", nargs="*", help="only these, without test-tls13- and .py")
    parser.add_argument("--python", default=sys.executable, help="the Python that has what tlsfuzzer wants")
    parser.add_argument("--port", choices=PORTS, help="only this one")
    parser.add_argument("--verbose", action="store_true", help="what scripts that fail say")
    parser.add_argument("--write", type=pathlib.Path, help="a Markdown file for the table")
    return parser.parse_args()


class Outcome:
    """What a script found."""

    def __init__(self, script, status, said, seconds):
        self.script, self.status, self.said, self.seconds = script, status, said, seconds
        self.figures = {name: int(count) for name, count in FIGURE.findall(said)}

    @property
    def is_good(self):
        return self.status == 0 and bool(self.figures.get("PASS"))

    def failed(self):
        """The names of conversations that went otherwise than expected."""
        end = self.said.rpartition("Test end")[2]
        return NAMED.findall(end.partition("FAILED:")[2] + end.partition("XPASSED:")[2])


def run(wanted, script, port, name):
    options = [*ARGUMENTS.get(script, []), *ARGUMENTS.get((script, name), [])]
    for conversation in EXPECTED.get(script, {}) | EXPECTED.get((script, name), {}):
        options += ["-x", conversation]
    began = time.monotonic()
    done = subprocess.run(
        [wanted.python, str(wanted.checkout / "scripts" / f"test-tls13-{script}.py"), "-p", str(port), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=SCRIPT_S,
        env=os.environ | {"PYTHONPATH": str(wanted.checkout)},
    )
    return Outcome(script, done.returncode, done.stdout + done.stderr, time.monotonic() - began)


def main():
    wanted = arguments()
    found = sorted(path.stem.removeprefix("test-tls13-") for path in wanted.checkout.glob("scripts/test-tls13-*.py"))
    scripts = [script for script in wanted.scripts or found if script not in LEFT_OUT]
    ports = [wanted.port] if wanted.port else list(PORTS)
    outcomes, bad = {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        servers = nodes(pathlib.Path(folder))
        for name in ports:

            def one(script, name=name):
                return run(wanted, script, servers[script in ECDSA].port(name), name)

            runs = pool.map(one, scripts)
            for outcome in runs:
                outcomes[outcome.script, name] = outcome
                figures = " ".join(f"{key}={value}" for key, value in outcome.figures.items())
                print(f"{name:8} {outcome.script:36} {'ok ' if outcome.is_good else 'BAD'} {outcome.seconds:6.1f} s  {figures}", flush=True)
                if not outcome.is_good:
                    bad += 1
                    print("\n".join(f"    {conversation}" for conversation in outcome.failed()))
                    if wanted.verbose:
                        print(outcome.said)
        for server in servers:
            server.end()
    if wanted.write:
        wanted.write.write_text(table(wanted, outcomes, scripts, ports))
    sys.exit(1 if bad else 0)


def nodes(folder):
    """One with a certificate of RSA, which most scripts want, and one with its own, of ECDSA."""
    made = []
    for kind in ("rsa", "ecdsa"):
        (folder / kind).mkdir()
        certificate, key, settings = folder / "rsa.crt", folder / "rsa.key", {}
        if kind == "rsa":
            command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
            subprocess.run(command, check=True, capture_output=True)
            settings = {"tls__certificate": certificate, "tls__key": key}
        made.append(Server(folder / kind, https__port=0, limits__profile="benchmark", **settings))
    return made


def commit(checkout):
    done = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or os.environ.get("TLSFUZZER_COMMIT", "unknown")


def table(wanted, outcomes, scripts, ports):
    """The page: what went as expected, what did not, what is not for this server, and why."""
    build = "a debug" if "/debug/" in str(BINARY) else "a release"
    total = {key: sum(outcome.figures.get(key, 0) for outcome in outcomes.values()) for key in ("PASS", "XFAIL", "FAIL", "XPASS")}
    lines = [
        "# TLS 1.3, by tlsfuzzer",
        "",
        f"Written by `python -m tlssuite` in `tests/interop` on {datetime.date.today()}: the {len(scripts) + len(LEFT_OUT)} scripts for TLS 1.3 of [tlsfuzzer](https://github.com/tlsfuzzer/tlsfuzzer)",
        f"({commit(wanted.checkout)}) against {build} build, at the port of clients with direct TLS and at the HTTPS port. The handshake of both is rustls';",
        "at the port of clients everything after it is the node's own ([ADR 3](adr/0003-tls-extracted-to-plain-data.md)), and at the HTTPS port rustls' too.",
        "",
        f"{total['PASS']:,} conversations went as the script has it, {total['XFAIL']:,} did not for a reason that is below, {total['FAIL'] + total['XPASS']:,} otherwise.",
        "In each, the script says what TLS 1.3 (RFC 8446) wants of a server; `sanity` is counted before and after.",
        "",
        "| script | " + " | ".join(PORTS[name] for name in ports) + " | what goes otherwise, and why |",
        "|---|" + "---:|" * len(ports) + "---|",
    ]
    for script in scripts:
        cells = [script]
        for name in ports:
            outcome = outcomes[script, name]
            passed, expected = outcome.figures.get("PASS", 0), outcome.figures.get("XFAIL", 0)
            cells.append(f"{passed:,}" + (f" and {expected:,}" if expected else "") + ("" if outcome.is_good else " **failed**"))
        reasons = {}
        for key in (script, *((script, name) for name in ports)):
            for conversation, why in EXPECTED.get(key, {}).items():
                where = "" if key == script else f", {PORTS[key[1]]}"
                reasons.setdefault(why + where, []).append(f"`{conversation}`")
        told = "; ".join(f"{shortened(names)}: {why}" for why, names in reasons.items())
        lines.append("| " + " | ".join([*cells, told]) + " |")
    lines += ["", "Not run, because they are about what this server does not do:", "", "| script | why |", "|---|---|"]
    lines += [f"| {script} | {why} |" for script, why in sorted(LEFT_OUT.items())]
    return "\n".join(lines) + "\n"


def shortened(names):
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


if __name__ == "__main__":
    main()

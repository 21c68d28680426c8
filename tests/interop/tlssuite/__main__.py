"""Runs tlsfuzzer's scripts for TLS 1.3 against the direct TLS port of a node and its HTTPS port, and prints a table.

tlsfuzzer is in no registry of packages: give the folder of a checkout of github.com/tlsfuzzer/tlsfuzzer. It wants the packages tlslite-ng (in the
version of its requirements.txt), ecdsa and kyber-py, in this Python or in the one that --python names.
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

        failed = NAMED.findall(said.rpartition("Test end")[2].partition("FAILED:")[2])
        self.reasons, self.bad = {}, []
        for name in (name.strip("'") for name in failed):
            why = next((why for words, why in EXPECTED.get(script, {}).items() if re.search(words, name)), None)
            if why and name != "sanity":
                self.reasons.setdefault(why, []).append(name)
            else:
                self.bad.append(name)

    @property
    def expected(self):
        """How many conversations went otherwise for a reason."""
        return sum(len(names) for names in self.reasons.values())

    @property
    def is_good(self):
        """All went as the script has it, or otherwise for a reason."""
        return bool(self.figures.get("PASS")) and not self.bad and self.figures.get("FAIL", 0) == self.expected


def run(wanted, script, port):
    began = time.monotonic()
    done = subprocess.run(
        [
            wanted.python,
            str(wanted.checkout / "scripts" / f"test-tls13-{script}.py"),
            "-p",
            str(port),
            *ARGUMENTS.get(script, []),
        ],
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
                return run(wanted, script, servers[script in ECDSA].port(name))

            runs = pool.map(one, scripts)
            for outcome in runs:
                outcomes[outcome.script, name] = outcome
                told = f"{outcome.figures.get('PASS', 0)} passed, {outcome.expected} otherwise for a reason"
                verdict = "ok " if outcome.is_good else "BAD"
                print(f"{name:8} {outcome.script:36} {verdict} {outcome.seconds:6.1f} s  {told}", flush=True)
                if not outcome.is_good:
                    bad += 1
                    print("\n".join(f"    {conversation}" for conversation in outcome.bad))
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
            command = [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ]
            command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
            subprocess.run(command, check=True, capture_output=True)
            settings = {"tls__certificate": certificate, "tls__key": key}
        made.append(Server(folder / kind, https__port=0, limits__profile="benchmark", **settings))
    return made


def commit(checkout):
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or os.environ.get("TLSFUZZER_COMMIT", "unknown")


def table(wanted, outcomes, scripts, ports):
    """The page: what went as expected, what did not, what is not for this server, and why."""
    build = "a debug" if "/debug/" in str(BINARY) else "a release"
    passed = sum(outcome.figures.get("PASS", 0) for outcome in outcomes.values())
    expected = sum(outcome.expected for outcome in outcomes.values())
    bad = sum(len(outcome.bad) for outcome in outcomes.values())
    lines = [
        "# TLS 1.3, by tlsfuzzer",
        "",
        f"Written by `python -m tlssuite` in `tests/interop` on {datetime.date.today()}: {len(scripts)} scripts for TLS 1.3 of",
        f"[tlsfuzzer](https://github.com/tlsfuzzer/tlsfuzzer) ({commit(wanted.checkout)}) against {build} build,",
        "at the port of clients with direct TLS and at the HTTPS port. The handshake of both is rustls'; what follows it is read and written by the node's own",
        "record layer at the port of clients ([ADR 3](adr/0003-tls-extracted-to-plain-data.md)), and by rustls at the HTTPS port.",
        "",
        f"{passed:,} conversations went as their script has it, {expected:,} otherwise for a reason that the table names, {bad:,} otherwise without one. `sanity`",
        "is counted before and after each script. In the gate are `tests/interop/test_tls_records.py`, which speaks such records itself, and the tests of the record layer.",
        "Which conversations of a script are tried is partly left to chance.",
        "",
        "| script | " + " | ".join(PORTS[name] for name in ports) + " | what goes otherwise, and why |",
        "|---|" + "---:|" * len(ports) + "---|",
    ]
    for script in scripts:
        cells, reasons = [script], {}
        for name in ports:
            outcome = outcomes[script, name]
            more = f" and {outcome.expected:,}" if outcome.expected else ""
            failed = f", {len(outcome.bad)} **failed**" if outcome.bad else ""
            cells.append(f"{outcome.figures.get('PASS', 0):,}{more}{failed}")
            for why, names in outcome.reasons.items():
                reasons.setdefault(why, []).extend(one for one in names if one not in reasons.get(why, []))
        told = "; ".join(f"{shortened(names)}: {why}" for why, names in reasons.items())
        lines.append("| " + " | ".join([*cells, told]) + " |")
    lines += ["", "Not run, because they are about what this server does not do:", "", "| script | why |", "|---|---|"]
    lines += [f"| {script} | {why} |" for script, why in sorted(LEFT_OUT.items())]
    return "\n".join(lines) + "\n"


def shortened(names):
    shown = ", ".join(f"`{name}`" for name in sorted(names)[:2])
    return shown if len(names) <= 2 else f"{shown} and {len(names) - 2} more"


if __name__ == "__main__":
    main()

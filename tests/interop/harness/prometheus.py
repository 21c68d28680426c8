"""One Prometheus of Debian on a free port, in a folder of its own."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import httpx

from .inbox import DEADLINE_S
from .ports import free_port

START_S = 60
ATTEMPTS = 5


class Prometheus:
    """A running Prometheus that scrapes a node under the job `carillon`; ends with `end`."""

    def __init__(self, folder, node, rules):
        self.folder = pathlib.Path(folder)
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": "carillon", "static_configs": [{"targets": [f"127.0.0.1:{node.port('http')}"]}]}
            ],
        }
        # JSON is YAML.
        (self.folder / "prometheus.yml").write_text(json.dumps(config))
        self.http = httpx.Client(timeout=DEADLINE_S, trust_env=False)
        # The port is free when it is chosen; somebody may be faster.
        for attempt in range(ATTEMPTS):
            if self._start(free_port()):
                return
            assert attempt + 1 < ATTEMPTS, self.said()

    def _start(self, port):
        self.url = f"http://127.0.0.1:{port}"
        command = [
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ)
        for _ in range(START_S * 20):
            try:
                self.process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                if self._is_ready():
                    return True
                continue
            if "address already in use" in self.said():
                return False
            raise AssertionError(f"Prometheus ended: {self.said()}")
        self.end()
        raise AssertionError(f"Prometheus was not ready within {START_S} s: {self.said()}")

    def _is_ready(self):
        try:
            return self.http.get(f"{self.url}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def query(self, expression):
        """The samples that an expression has now: labels and value."""
        answer = self.http.get(f"{self.url}/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", f"{expression}: {answer.get('error')}"
        return [(sample["metric"], float(sample["value"][1])) for sample in answer["data"]["result"]]

    def alerts(self):
        """The alert rules, as they were evaluated last."""
        answer = self.http.get(f"{self.url}/api/v1/rules").json()
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]

    def end(self):
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def said(self):
        return (self.folder / "log").read_text(errors="replace")


def is_installed():
    return all(shutil.which(tool) for tool in ("prometheus", "promtool"))

"""What is in `deploy/` and in the workflows besides the packages, as far as it can be checked without the services it is for."""

import re
import subprocess

import pytest
import yaml

from harness.chart import tool
from harness.server import ROOT, run

CLOUD_INIT = ROOT / "deploy/cloud-init/carillon.yaml"
WORKFLOWS = ROOT / ".github/workflows"


def test_the_settings_and_the_commands_for_a_virtual_machine_are_right(tmp_path):
    text = CLOUD_INIT.read_text()
    assert text.startswith("#cloud-config\n")
    told = yaml.safe_load(text)
    files = {file["path"]: file["content"] for file in told["write_files"]}
    settings = tmp_path / "carillon.toml"
    settings.write_text(files["/etc/carillon/carillon.toml"].replace("/var/lib/carillon", str(tmp_path / "data")))
    # 1: the machine of the test has other limits; 2 would be wrong settings.
    checked = run("config", "check", "--config", str(settings))
    assert checked.returncode != 2, checked.stderr
    shared = (ROOT / "deploy/sysctl/91-carillon-million.conf").read_text()
    lines = [line for line in files["/etc/sysctl.d/91-carillon-million.conf"].splitlines() if not line.startswith("#")]
    assert lines == [line for line in shared.splitlines() if not line.startswith("#")]
    [script] = [command[2] for command in told["runcmd"] if command[:2] == ["sh", "-ec"]]
    parsed = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
    assert parsed.returncode == 0, parsed.stderr
    # The release that the workflow makes.
    assert re.search(r"/v([0-9.]+)/carillon_\1_amd64\.deb", script)


@pytest.mark.skipif(tool("actionlint") is None, reason="actionlint is not installed: tests/interop/setup builds it")
def test_the_workflows_are_linted():
    files = sorted(str(path) for path in WORKFLOWS.glob("*.yml"))
    assert files
    linted = subprocess.run([tool("actionlint"), *files], capture_output=True, text=True, timeout=60, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_workflow_builds_with_the_toolchain_of_the_repository():
    [channel] = re.findall(r'^channel = "(.+)"$', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)
    used = re.findall(r"dtolnay/rust-toolchain@(\S+)", (WORKFLOWS / "release.yml").read_text())
    assert used
    assert set(used) == {channel}

"""What docs/ci.md tells people to copy."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import gate_sample as made
import pytest
from action_steps import BASH, ROOT, Job, action
from ruamel.yaml import YAML

from edgebench.reports.comparing.as_json import gate_json

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SCENARIO = """\
schema_version: 1
name: smoke
model: {name: made-up, source: "path:model.gguf"}
variants: [{runner: fake, token_s: 0.01, prefill_s: 0.05, virtual_clock: true}]
workloads: [{name: chat, prompt_tokens: 16, generate_tokens: 4}]
measure: {warmup: {min: 1, max: 1}, repetitions: {min: 8, max: 8}, per_block: 1}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def yaml_with(key: str) -> list[Any]:
    found = [YAML(typ="safe").load(each) for each in blocks("yaml")]
    return [each for each in found if key in each]


@pytest.mark.parametrize(("against", "status"), [("token_s=0.0095", 1), ("threads=1", 0)])
def test_the_gitlab_job_does_what_it_says(tmp_path: Path, against: str, status: int) -> None:
    """Its script fails for a slowdown of 5 % and for nothing else, and leaves what it promises."""
    job = yaml_with("benchmark")[0]["benchmark"]
    place = Job(tmp_path / "home")
    (place.checkout / "smoke.yaml").write_text(SCENARIO.replace("fake,", "fake, threads: 2,"))
    (place.checkout / "model.gguf").write_bytes(b"weights")
    policy = "schema_version: 1\nlimits: {decode_rate: {worse_by: 2%}}\n"
    (place.checkout / "gate.yaml").write_text(policy)
    assert set(job["variables"]) == {"SCENARIO", "AGAINST", "POLICY"}
    done = subprocess.run(
        [BASH, "-e", "-o", "pipefail", "-c", "\n".join(job["script"])],
        capture_output=True, text=True, check=False, cwd=place.checkout,
        env={
            "PATH": f"{place.home / 'bin'}:/usr/bin:/bin", "HOME": str(place.home), "NO_COLOR": "1",
            "SCENARIO": "smoke.yaml", "AGAINST": against, "POLICY": "gate.yaml",
        },
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    artifacts = job["artifacts"]
    assert artifacts["when"] == "always"
    for name in (*artifacts["paths"], *artifacts["reports"].values()):
        assert (place.checkout / name).exists(), name
    suite = ET.fromstring((place.checkout / artifacts["reports"]["junit"]).read_bytes())
    assert int(suite.attrib["failures"]) == status
    metrics = (place.checkout / artifacts["reports"]["metrics"]).read_text()
    assert "edgebench_decode_rate{" in metrics


def test_the_github_jobs_use_the_action_as_it_is() -> None:
    """Inputs that are shown exist, and the table names every input."""
    inputs = set(action()["inputs"])
    steps = [step for each in yaml_with("jobs") for step in each["jobs"]["gate"]["steps"]]
    used = [set(step["with"]) for step in steps if "edgebench" in step.get("uses", "")]
    assert len(used) == 2
    assert set.union(*used) <= inputs
    table = PAGE.split("Inputs of the action:")[1].split("\n\n")[1]
    assert inputs <= set(re.findall(r"`([\w-]+)`", table))


def test_the_page_names_every_key_of_the_json() -> None:
    """Keys of the outcome, of checks, of sides and of rows."""
    described = set(re.findall(r"`(\w+)`", PAGE.split("## JSON")[1]))
    found = json.loads(json.dumps(gate_json(made.every_status())))
    keys = {*found, *found["comparison"], *found["checks"][0], *found["comparison"]["rows"][0]}
    assert keys <= described

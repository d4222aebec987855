"""What an inspection says of the settings that a report prints, if they are pasted as they stand."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlaudit.inspection.inspect import one_config
from rlaudit.severity import Severity
from rlaudit.vllm.machine import Machine

# Each form with what stands around it in a user's file.
FILES = {
    "python": ("rollout.py", "from vllm import LLM\n{}"),
    "command": ("serve.sh", "{}"),
    "parity": ("serve.yaml", "model: MODEL\ngpu-memory-utilization: 0.9\n{}"),
}


def faults(block: Mapping[str, Any], version: str) -> Iterator[str]:
    """Every error in a form of a reported block's settings, inspected for its release."""
    with tempfile.TemporaryDirectory() as folder:
        for form, (name, around) in FILES.items():
            if block.get(form):
                path = Path(folder) / name
                path.write_text(around.format(block[form]))
                config = one_config(path, Machine(), version, version)
                yield from (f"{form}: {finding.rule}: {finding.message}" for finding in config.findings
                            if finding.severity is Severity.ERROR)  # fmt: skip


def faults_of_report(report: Mapping[str, Any]) -> list[str]:
    """The same of all blocks of a report."""
    versions = {arm["block"]: arm["environment"].removeprefix("vllm ") for arm in report.get("arms", ())
                if arm["role"] == "candidate"}  # fmt: skip
    return [fault for block in report.get("blocks", ()) if block["name"] in versions
            for fault in faults(block, versions[block["name"]])]  # fmt: skip

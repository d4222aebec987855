"""A recording names the packages whose plug-ins vLLM runs: they may change anything in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rlaudit.recording.folder import RECORDER

SCRIPT = "import json, rlaudit_recorder; print(json.dumps(rlaudit_recorder._versions()))"


PACKAGES = (
    ("acme-npu", "vllm.platform_plugins"),
    ("acme-cli", "console_scripts"),
    ("rlaudit-recorder", "vllm.general_plugins"),
)


def test_a_package_with_plug_ins_of_vllm_is_among_the_packages_of_a_process(tmp_path: Path) -> None:
    for name, group in PACKAGES:
        folder = tmp_path / f"{name.replace('-', '_')}-1.2.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\nnpu = acme:register\n")
    environment = {**os.environ, "PYTHONPATH": f"{RECORDER.parent}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    versions = json.loads(done.stdout)
    assert versions["acme-npu"] == "1.2.0" and not {"acme-cli", "rlaudit-recorder"} & set(versions)

"""On CUDA builds the recorder finds the hooks that the catalogue has of the release, and writes the engine's record.

Without a GPU: no worker starts, no request is made.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cuda_python import cuda_python, ran
from packaging.version import Version
from recorder_folder import write_recorder
from test_inspect_predicts_what_cuda_resolves import device, model_in

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.recording.hook_points import PARTS, hook_points
from rlaudit.recording.shipped.rlaudit_recorder import FRONT_ENDS

pytestmark = [pytest.mark.engine, pytest.mark.beside]

SCRIPT = Path(__file__).with_name("register_as_cuda.py")
# Release -> the CPU build whose packages its Python is imported over: the environments that the other tests build.
# With the CUDA builds' own environments it was seen by hand on 2026-11-24, for these and 0.26.0.
PACKAGES_OF = {"0.8.5": "0.8.5", "0.18.1": "0.18.1", "0.26.0": "0.32.0", "0.33.0": "0.32.0"}
WRITTEN = {"max_model_len": 128, "enforce_eager": True, "seed": 3}


@dataclass(frozen=True)
class Registered:
    """hooked, absent: targets, and modules that the release lacks. records: the lines of the recording's one file."""

    hooked: set[str]
    absent: set[str]
    records: list[dict[str, Any]]


def registered(version: str, command: Sequence[str], tree: Path, folder: Path) -> Registered:
    """Resolve an engine's configuration on an H100 that is not there, with the recorder's folder on PYTHONPATH.

    command starts an interpreter that has the packages; tree holds the CUDA build's vllm/ and its dist-info.
    """
    recording = folder / "recording"
    arguments = {"model": str(model_in(folder)), **WRITTEN}
    job = {"device": device("h100", version), "tree": str(tree), "engine_args": arguments}
    path = os.pathsep.join([str(recorder_in(folder / "recorder")), str(tree)])
    done = ran(command, SCRIPT, job, tree, folder, PYTHONPATH=path, RLAUDIT_RECORD=str(recording))
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    (file,) = recording.glob("*.jsonl")
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return Registered(set(found["hooked"]), set(found["absent"]), records)


def recorder_in(folder: Path) -> Path:
    """Write the recorder's folder, with vLLM's door and no other."""
    write_recorder(folder)
    (folder / "sitecustomize.py").unlink()
    return folder


def disagreements(version: str, seen: Registered) -> list[str]:
    """Return what is not as it has to be, in words."""
    points, release = hook_points(), Version(version)
    expected = {target for part in PARTS for target in points.found(part, release)}
    said = [f"not hooked: {target}" for target in sorted(expected - seen.hooked)]
    unknown = seen.hooked - expected - set(FRONT_ENDS)
    said += [f"hooked, and not in the catalogue: {target}" for target in sorted(unknown)]
    said += [f"failed: {record}" for record in seen.records if record["kind"] in {"failed", "dropped"}]
    engines = [record for record in seen.records if record["kind"] == "engine"]
    if len(engines) != 1:
        return [*said, f"{len(engines)} engine records"]
    written, effective = engines[0]["written"], engines[0]["effective"]
    said += [f"written {name}: {written.get(name)}" for name, value in WRITTEN.items() if written.get(name) != value]
    # 0.8.5 writes the model into its arguments as the tokenizer.
    extra = set(written) - set(WRITTEN) - {"model", "tokenizer"}
    said += [f"written, and not by us: {name} = {written[name]!r}" for name in sorted(extra)]
    for section in ("model_config", "cache_config", "parallel_config", "scheduler_config", "compilation_config"):
        if not isinstance(effective.get(section), dict):
            said.append(f"effective {section}: {effective.get(section)!r}")
    model = effective["model_config"] if isinstance(effective.get("model_config"), dict) else {}
    resolved = {name: model.get(name) for name in WRITTEN}
    said += [] if resolved == WRITTEN else [f"effective: {resolved}"]
    return said if engines[0]["error"] is None else [*said, f"error: {engines[0]['error']}"]


@pytest.mark.parametrize("version", PACKAGES_OF)
def test_the_recorder_finds_what_the_catalogue_says_of_a_cuda_build(version: str, tmp_path: Path) -> None:
    environment = ensure(EnvironmentSpec("vllm", PACKAGES_OF[version], "cpu"), report=print)
    seen = registered(version, environment.command, cuda_python(version), tmp_path)
    assert disagreements(version, seen) == []

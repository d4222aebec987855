"""The functions that the recorder knows stand where it says, in the frameworks' packages, and are read off right.

Packages are installed without what they need, below rlaudit's cache. Where a function stands is read, not run; what can
be run with torch alone is.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from recorded_run import ran
from recorder_folder import write_recorder
from test_completions_in_every_layout import front, sequences

from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.files.cache_folder import cache_folder
from rlaudit.recording.shipped.rlaudit_frameworks import FUNCTIONS
from rlaudit.tokens.recorded.recorded_log import recorded_log

pytestmark = [pytest.mark.engine, pytest.mark.beside]

PROGRAM = Path(__file__).with_name("framework_function.py")
# Distribution, releases, and the name by which FUNCTIONS has them.
PACKAGES = {
    "trl": (("0.17.0", "0.19.1", "0.20.0", "0.22.2", "1.16.0"), "TRL"),
    "verl": (("0.4.1", "0.9.1"), "verl"),
    "openrlhf": (("0.8.5", "0.11.2"), "OpenRLHF"),
    "skyrl": (("0.1.0", "0.3.0"), "SkyRL"),
    "areal": (("1.0.4",), "AReaL"),
    "ms-swift": (("3.12.6", "4.6.0"), "ms-swift"),
}
VERL = "verl.utils.torch_functional:logprobs_from_logits"
OPENRLHF = "openrlhf.models.utils:log_probs_from_logits"
SKYRL = "skyrl.backends.skyrl_train."
AREAL = "areal.utils.functional.vocab_parallel:"
# What a function's module imports, and the function does not use.
RUNS = (
    ("verl", "0.4.1", VERL, ("tensordict",)),
    ("verl", "0.9.1", VERL, ("tensordict",)),
    ("verl", "0.9.1", "verl.utils.experimental.torch_functional:FusedLinearForPPO.forward", ()),
    ("openrlhf", "0.8.5", OPENRLHF, ()),
    ("openrlhf", "0.11.2", OPENRLHF, ("deepspeed.runtime.zero",)),
    ("skyrl", "0.3.0", f"{SKYRL}utils.torch_utils:logprobs_from_logits", ("jaxtyping",)),
    (
        "skyrl",
        "0.3.0",
        f"{SKYRL}distributed.megatron.model_utils:from_parallel_logits_to_logprobs",
        ("megatron.core.parallel_state",),
    ),
    ("areal", "1.0.4", f"{AREAL}gather_logprobs", ("areal.infra.platforms",)),
    ("areal", "1.0.4", f"{AREAL}gather_logprobs_entropy", ("areal.infra.platforms",)),
)


def installed(distribution: str, release: str) -> Path:
    """The packages of a release, installed once."""
    folder = cache_folder() / "frameworks" / f"{distribution}-{release}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):  # test_dialect_places.py may want the same release
        if (folder / ".done").exists():
            return folder
        place = ["--no-deps", "--ignore-requires-python", "--target", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", *place, f"{distribution}=={release}"], check=True)
        (folder / ".done").touch()
    return folder


def definition(folder: Path, target: str) -> ast.stmt | None:
    """What a target names in a release: a function, or the assignment of one; None if it is not there."""
    module, _, name = target.partition(":")
    file = folder.joinpath(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    found: list[ast.stmt] = ast.parse(file.read_text()).body if file.exists() else []
    node = None
    for part in name.split("."):
        named = [one for one in found if part in (getattr(one, "name", None), _assigned(one))]
        if not named:
            return None
        node = named[-1]
        found = getattr(node, "body", [])
    return node


def _assigned(node: ast.stmt) -> str | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else None


@pytest.mark.parametrize("distribution", PACKAGES)
def test_functions_stand_where_the_recorder_says_with_the_argument_that_holds_the_ids(distribution: str) -> None:
    releases, name = PACKAGES[distribution]
    said = {target: re.findall(rf"{name} (.*)", where) for target, (_, where) in FUNCTIONS.items()}
    read = 0
    for release in releases:
        folder = installed(distribution, release)
        for target, places in said.items():
            lines = [int(line) for one in places for at, line in re.findall(r"([\d.]+):(\d+)", one) if at == release]
            if not lines:
                continue
            found = definition(folder, target)
            assert found is not None and found.lineno == lines[0], (release, target, found and found.lineno)
            ids = FUNCTIONS[target][0]
            if isinstance(found, ast.FunctionDef):
                assert ids in [argument.arg for argument in found.args.args], (release, target)
            else:
                assert isinstance(ids, int)
            read += 1
    assert read >= len(releases)


@pytest.mark.parametrize(("distribution", "release", "target", "stand_ins"), RUNS, ids=lambda one: str(one)[-40:])
def test_what_a_framework_computes_is_read_off(
    distribution: str, release: str, target: str, stand_ins: tuple[str, ...], tmp_path: Path
) -> None:
    check(installed(distribution, release), target, stand_ins, tmp_path)


def check(packages: Path, target: str, stand_ins: tuple[str, ...], folder: Path) -> None:
    """Run a function of a framework below the recorder, and hold what is read against what is computed by hand."""
    out, trainer = folder / "out", ensure(trainer_spec("cpu"), report=print)
    front(out)
    (folder / "completions.json").write_text(json.dumps(sequences()))
    words = (PROGRAM, packages, target, folder / "completions.json", *stand_ins)
    done = ran(trainer, *words, recorder=write_recorder(folder / "recorder"), out=out, paths=[PROGRAM.parent])
    by_hand = json.loads(done.stdout.splitlines()[-1])
    log = recorded_log(out)
    assert not any(process.failed or process.dropped for process in log.recording.processes)
    read = {sequence.sample: sequence.trainer_logprobs_T for sequence in log.logged()}
    assert len(read) == len(sequences())
    place = 0
    for number, (prompt, ids) in enumerate(sequences()):
        place += len(prompt)
        logprobs_T = read[str(number)]
        assert logprobs_T is not None, number
        np.testing.assert_allclose(logprobs_T, by_hand[place - 1 : place - 1 + len(ids)], atol=3e-6)
        place += len(ids)

"""Engines that the user brings: `--python` and `--trainer-python` instead of environments of rlaudit's own."""

import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest
from laboratories import V0, V1, Laboratory, Signpost, interpreter_with_fakes, processes_of

from rlaudit.engines.environments.environment_spec import EnvironmentSpec, trainer_spec
from rlaudit.errors import NotFinished

ONE = {"name": "given", "candidate": {"version": V1}, "repeats": 0}
BOTH = {
    "name": "given", "reference": {"version": V0}, "candidate": {"version": V1},
    "factors": {"logprobs-mode": "processed"}, "parity": ["logprobs-mode"], "repeats": 0,
}  # fmt: skip
CLEANS = "env -i PATH=/usr/bin VLLM_USE_V1=1"


class Given:
    """Interpreters as options, in a user's account without a single built environment."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.python = {version: str(laboratory.python(f"vllm-{version}-cpu")) for version in (V0, V1)}
        self.trainer = str(laboratory.python(trainer_spec("cpu").name))

    def options(self, *releases: str, front: str = "") -> list[str]:
        """An option for each release, behind `front`, and the trainer's."""
        words = [f"{release}={front} {self.python[release]}".replace("= ", "=") for release in releases]
        return [part for word in words for part in ("--python", word)] + self.for_trainer

    @property
    def for_trainer(self) -> list[str]:
        """The option that names the trainer."""
        return ["--trainer-python", self.trainer]


@pytest.fixture
def given(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Given:
    monkeypatch.setenv("XDG_CACHE_HOME", str(laboratory.folder / "empty"))
    return Given(laboratory)


def test_one_interpreter_needs_no_release_and_a_trainer_of_any_transformers_is_taken_and_on_record(
    laboratory: Laboratory, given: Given
) -> None:
    spec = EnvironmentSpec("trainer", "5.17.0", "cpu")
    trainer = interpreter_with_fakes(laboratory.folder / "trainer", spec)
    python = ["--python", given.python[V1]]
    run = laboratory.ablate(laboratory.recipe(ONE), *python, "--trainer-python", str(trainer))
    assert run.arm("candidate")["status"] == "ok"
    assert run.report["run"]["provenance"]["environments"]["trainer"]["versions"]["transformers"] == "5.17.0"


def test_an_interpreter_for_each_release_is_used_and_nothing_is_built(laboratory: Laboratory, given: Given) -> None:
    recipe = laboratory.recipe(BOTH)
    plain = laboratory.ablate(recipe, *given.options(V0, V1))
    assert [arm["status"] for arm in plain.report["arms"]] == ["ok"] * 3
    assert plain.effects() == {"logprobs-mode=processed": "removes the mismatch"}
    environments = plain.report["run"]["provenance"]["environments"]
    assert [environments[f"vllm {version}"]["python"] for version in (V0, V1)] == list(given.python.values())
    assert environments["trainer"]["python"] == given.trainer
    assert f"vllm=={V1}" in environments[f"vllm {V1}"]["lock"]
    assert not (laboratory.folder / "empty" / "rlaudit" / "engines").exists()
    # Behind a command that cleans the environment the figures are the same, and no cell runs again.
    kept = laboratory.ablate(recipe, *given.options(V0, V1, front=CLEANS))
    assert kept.report["run"]["cells_run"] == 0
    shutil.rmtree(laboratory.run_dir)
    again = laboratory.ablate(recipe, *given.options(V0, V1, front=CLEANS))
    assert again.report["run"]["cells_run"] > 0
    assert again.report["layers"] == kept.report["layers"] == plain.report["layers"]
    notes = kept.report["run"]["provenance"]["environments"][f"vllm {V0}"]["notes"]
    assert "VLLM_USE_V1" in notes[0]


def test_a_release_that_was_not_given_is_taken_from_rlaudit_s_own_and_that_is_said(
    laboratory: Laboratory, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(laboratory.cache))
    run = laboratory.ablate(laboratory.recipe(BOTH), *given.options(V0))
    assert run.arm("candidate")["status"] == "ok"
    assert f"no --python names vLLM {V1}" in run.stderr


def test_a_release_that_was_not_given_and_cannot_be_had_ends_with_3_before_any_engine_starts(
    laboratory: Laboratory, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_index(*_: object) -> None:
        raise NotFinished("could not be had: no index")

    monkeypatch.setattr("rlaudit.laboratory.run_setup.ensure", no_index)
    run = laboratory.ablate(laboratory.recipe(BOTH), *given.options(V0))
    assert run.exit_code == 3
    assert f"vLLM {V1}: could not be had: no index" in run.stderr
    assert f"--python {V1}=COMMAND" in run.stderr
    assert not (laboratory.run_dir / "cells").exists()


@pytest.mark.parametrize("front", ["", CLEANS])
def test_another_version_than_the_one_named_is_refused(laboratory: Laboratory, given: Given, front: str) -> None:
    wrong = f"{front} {given.python[V1]}".strip()
    run = laboratory.ablate(laboratory.recipe(ONE | {"candidate": {"version": V0}}), "--python", f"{V0}={wrong}")
    assert run.exit_code == 2
    assert f"{shlex.join(shlex.split(wrong))} holds vllm {V1}, not {V0}" in run.stderr


def test_an_interpreter_without_vllm_or_torch_is_refused_with_what_it_lacks(
    laboratory: Laboratory, given: Given
) -> None:
    run = laboratory.ablate(laboratory.recipe(ONE), "--python", sys.executable, *given.for_trainer)
    assert run.exit_code == 2
    assert f"{sys.executable} holds no vLLM and no torch" in run.stderr
    run = laboratory.ablate(laboratory.recipe(ONE), "--python", given.python[V1], "--trainer-python", sys.executable)
    assert run.exit_code == 2
    assert f"{sys.executable} holds no torch and no transformers" in run.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/nowhere/python", "/nowhere/python does not run: there is no program /nowhere/python"),
        ("bash -c 'echo no such image >&2; exit 125'", "ended with code 125; no such image"),
    ],
)
def test_a_dead_command_ends_with_3_before_any_engine_starts(
    laboratory: Laboratory, given: Given, command: str, message: str
) -> None:
    options = given.options(V0)
    run = laboratory.ablate(laboratory.recipe(BOTH), *options, "--python", f"{V1}={command}")
    assert run.exit_code == 3
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert not (laboratory.run_dir / "cells").exists()


def test_a_box_that_does_not_hold_the_run_s_folder_is_refused_and_the_mount_is_written_out(
    laboratory: Laboratory, given: Given
) -> None:
    # A box with a folder of its own in that place, as a container has.
    hidden = Path(laboratory.run_dir).absolute()
    covered = f'mkdir -p {hidden}; mount -t tmpfs none {hidden} && exec "$@"'
    box = f"unshare --map-root-user --mount bash -c {shlex.quote(covered)} --"
    if os.system(f"{box} true 2>/dev/null"):
        pytest.skip("this machine lets nobody make a namespace of mounts")
    run = laboratory.ablate(laboratory.recipe(ONE), *given.options(V1, front=box))
    assert run.exit_code == 2
    assert f"cannot see {hidden}" in run.stderr
    assert f"-v {hidden}:{hidden}" in run.stderr
    assert f"--bind {hidden}" in run.stderr


def test_ctrl_c_leaves_nothing_behind_a_command_in_front(
    laboratory: Laboratory, given: Given, signpost: Signpost
) -> None:
    hangs = ONE | {"environment_variables": {"FAKE_VLLM_REACHED": str(signpost.path), "FAKE_VLLM_AILMENT": "hangs"}}
    front = "bash -c '\"$@\"; exit $?' --"
    with laboratory.start(laboratory.recipe(hangs), *given.options(V1, front=front)) as process:
        signpost.wait()
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 130
    assert processes_of(laboratory.folder) == []

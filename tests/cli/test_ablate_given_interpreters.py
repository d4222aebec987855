"""Engines that the user brings: `--python` and `--trainer-python` instead of environments of rlaudit's own."""

from pathlib import Path

import pytest
from laboratories import V0, V1, Laboratory

from rlaudit.engines.environment_spec import trainer_spec

BLOCK = {"name": "given", "candidate": {"version": V1}, "repeats": 0}


@pytest.fixture
def given(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that name both interpreters, in a user's account without a single built environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(laboratory.folder / "empty"))
    engine, trainer = laboratory.python(f"vllm-{V1}-cpu"), laboratory.python(trainer_spec("cpu").name)
    return ["--python", str(engine), "--trainer-python", str(trainer)]


def test_interpreters_that_are_given_are_used_and_nothing_is_built(laboratory: Laboratory, given: list[str]) -> None:
    run = laboratory.ablate(laboratory.recipe(BLOCK), *given)
    assert run.arm("candidate")["status"] == "ok"
    environments = run.report["run"]["provenance"]["environments"]
    assert [environments[f"vllm {V1}"]["python"], environments["trainer"]["python"]] == given[1::2]
    assert not (laboratory.folder / "empty" / "rlaudit" / "engines").exists()


def test_an_interpreter_that_holds_another_version_than_the_recipe_s_is_refused(
    laboratory: Laboratory, given: list[str]
) -> None:
    run = laboratory.ablate(laboratory.recipe(BLOCK | {"candidate": {"version": V0}}), *given)
    assert run.exit_code == 2
    assert f"{given[1]} holds vllm {V1}, not {V0}" in run.stderr


def test_an_interpreter_that_is_not_there_ends_with_3_and_names_it(laboratory: Laboratory, given: list[str]) -> None:
    nowhere = str(Path("/nowhere/python"))
    run = laboratory.ablate(laboratory.recipe(BLOCK), "--python", nowhere, *given[2:])
    assert run.exit_code == 3
    assert f"{nowhere} does not run" in run.stderr
    assert "Traceback" not in run.stderr

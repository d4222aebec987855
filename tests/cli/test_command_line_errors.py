"""What the user got wrong: exit code 2, one clear line with what to do next, and nothing started."""

from pathlib import Path
from typing import Any

import pytest
from laboratories import V1, Laboratory

from rlaudit.cli import app

CLEAN: dict[str, Any] = {"name": "clean", "candidate": {"version": V1}, "repeats": 0}


def assert_usage_error(laboratory: Laboratory, *words: str, says: str) -> None:
    run = laboratory.command(*words)
    assert run.exit_code == 2
    assert says in " ".join(run.stderr.split())
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    # The sentence, and what to do next.
    assert run.stderr.count("\n") <= 2
    assert not laboratory.run_dir.exists()


@pytest.mark.parametrize(
    ("block", "keys", "says"),
    [
        ({"repeat": 1}, {}, "unknown key blocks.0.repeat; did you mean repeats?"),
        ({}, {"sampling": {"temprature": 1}}, "unknown key sampling.temprature; did you mean temperature?"),
        ({"factors": {"logprob-mode": "raw"}}, {}, "unknown factor 'logprob-mode' in block clean"),
        ({"factors": {"logprob-mode": "raw"}}, {}, "did you mean logprobs-mode?"),
        ({"factors": {"logprobs-mode": "cooked"}}, {}, "factor logprobs-mode has no level 'cooked'; it has raw, proc"),
        ({"parity": ["dummy"]}, {}, "block clean: 'dummy' is in parity but not among its factors"),
        ({"candidate": {"version": 0.18}}, {}, 'YAML reads 0.18 as a number; write the version in quotes, as "0.18"'),
        ({"candidate": {"version": "0.7.3"}}, {}, "vLLM 0.7.3 is too old: rlaudit knows 0.8.5 and later"),
        ({"candidate": {"version": "newest"}}, {}, "'newest' is not a version of vllm"),
        ({"candidate": {}}, {}, "blocks.0.candidate.version: Field required"),
        ({}, {"sampling": {"temperature": 0}}, "sampling.temperature: Input should be greater than 0"),
        ({"prompts_used": 17}, {}, "block clean uses 17 prompts, the prompt set has 16"),
        ({}, {"schema": "rlaudit-recipe/2"}, "schema: Input should be 'rlaudit-recipe/1'"),
    ],
)
def test_a_recipe_that_cannot_be_meant_names_the_key_and_what_was_expected(
    laboratory: Laboratory, block: dict[str, Any], keys: dict[str, Any], says: str
) -> None:
    recipe = laboratory.recipe(CLEAN | block, **keys)
    assert_usage_error(laboratory, *laboratory.arguments(recipe), says=says)


def test_a_model_that_is_not_there_is_refused_before_an_engine_starts(laboratory: Laboratory) -> None:
    run = laboratory.ablate(laboratory.recipe(CLEAN), "--model", "/nowhere/checkpoint")
    assert run.exit_code == 2
    assert "there is no model '/nowhere/checkpoint'" in run.stderr
    assert not laboratory.run_dir.exists()


def test_two_blocks_of_one_name_are_refused(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(CLEAN, CLEAN)
    assert_usage_error(laboratory, *laboratory.arguments(recipe), says="two blocks share a name: clean, clean")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.txt", b"\n  \n", "is empty"),
        ("latin.txt", b"caf\xe9\n", "is not UTF-8: invalid continuation byte at byte 3"),
        ("bad.jsonl", b'{"prompt": "fine"}\n{"prompt": \n', "bad.jsonl:2: not JSON: Expecting value"),
        ("other.jsonl", b'{"text": "fine"}\n', "other.jsonl:1: expected an object with prompt, messages or prompt_tok"),
    ],
)
def test_prompts_that_cannot_be_read_name_the_file_and_the_line(
    laboratory: Laboratory, name: str, content: bytes, says: str
) -> None:
    prompts = laboratory.folder / name
    prompts.write_bytes(content)
    arguments = laboratory.arguments(laboratory.recipe(CLEAN), "--prompts", str(prompts))
    assert_usage_error(laboratory, *arguments, says=says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("model: x\nblocks: [", "found '<stream end>' in line 2 (while parsing a flow node)"),
        ("- one\n- two\n", "holds list, not a mapping of recipe keys"),
        ("", "holds NoneType, not a mapping of recipe keys"),
    ],
)
def test_a_file_that_is_no_recipe_is_told_from_one_with_a_mistake(
    laboratory: Laboratory, content: str, says: str
) -> None:
    path = laboratory.folder / "broken.yaml"
    path.write_text(content)
    assert_usage_error(laboratory, *laboratory.arguments(path), says=says)


def test_a_recipe_that_does_not_exist_names_the_nearest_one(laboratory: Laboratory) -> None:
    arguments = laboratory.arguments(Path("v0-to-v2"))
    assert_usage_error(laboratory, *arguments, says="no recipe named 'v0-to-v2' did you mean v0-to-v1?")


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (
            ["jsn"],
            "unknown output format 'jsn' there are: concise, github, gitlab, html, json, junit, markdown, sarif, te",
        ),
        (["text", "json"], "only one report can go to stdout"),
    ],
)
def test_reports_that_cannot_be_written_are_refused_before_anything_is_run(
    laboratory: Laboratory, outputs: list[str], says: str
) -> None:
    arguments = laboratory.arguments(laboratory.recipe(CLEAN))
    arguments += [word for output in outputs for word in ("--output", output)]
    assert_usage_error(laboratory, *arguments, says=says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ablate"], "missing argument 'RECIPE' see: rlaudit ablate --help"),
        (["ablate", "quick", "--samples", "0"], "invalid value for '--samples'"),
        (["ablate", "quick", "--no"], "there is no option --no"),
        (["inspekt"], "there is no command 'inspekt' did you mean inspect?"),
    ],
)
def test_a_command_line_that_typer_refuses_is_said_as_any_other(
    laboratory: Laboratory, words: list[str], says: str
) -> None:
    assert_usage_error(laboratory, *words, says=says)


def test_a_report_of_what_is_no_run_is_a_usage_error(laboratory: Laboratory) -> None:
    assert_usage_error(laboratory, "report", str(laboratory.folder / "nothing"), says="no such run")
    other = laboratory.folder / "other.json"
    other.write_text('{"schema": "something-else/1"}')
    assert_usage_error(laboratory, "report", str(other), says="is not a report of rlaudit")


def test_a_report_of_a_run_that_was_interrupted_says_that_it_goes_on(laboratory: Laboratory) -> None:
    laboratory.run_dir.mkdir()
    (laboratory.run_dir / "plan.json").write_text("{}")
    run = laboratory.command("report", str(laboratory.run_dir))
    assert run.exit_code == 3
    assert "has not finished" in run.stderr


def test_a_dry_run_says_that_a_release_is_not_known(laboratory: Laboratory) -> None:
    said = laboratory.ablate(laboratory.recipe(CLEAN | {"candidate": {"version": "9.9.9"}}), "--dry-run").stdout
    assert "vLLM 9.9.9 is not among the releases that rlaudit knows" in said
    assert "not among" not in laboratory.ablate(laboratory.recipe(CLEAN), "--dry-run").stdout


def test_a_dry_run_prints_what_would_be_run_and_starts_nothing(laboratory: Laboratory) -> None:
    run = laboratory.ablate(laboratory.recipe(CLEAN | {"factors": {"dummy": "on"}}), "--dry-run")
    assert run.exit_code == 0
    assert "candidate + dummy=on" in run.stdout
    assert "environments to build: none" in run.stdout
    assert not laboratory.run_dir.exists()


def test_a_crash_of_rlaudit_itself_is_told_as_a_bug_with_code_70(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError("not foreseen")

    monkeypatch.setattr("rlaudit.laboratory.study.load_study", crash)
    run = laboratory.command("ablate", "quick", "--cpu")
    assert run.exit_code == 70
    assert "ZeroDivisionError: not foreseen" in run.stderr
    assert "this is a bug in rlaudit" in run.stderr


@pytest.mark.parametrize("code", [None, 0, 1, 2, 3, 15, "a sentence"])
def test_what_ends_python_from_within_does_not_pass_for_a_verdict(code, monkeypatch, capsys):
    def leave(arguments):
        raise SystemExit(code)

    monkeypatch.setattr("rlaudit.cli.commands.run_command", leave)
    assert app.run(["compare"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_releases_of_a_recipe_are_not_changed_by_options(capsys):
    assert app.run(["ablate", "v0-to-v1", "--to", "0.99.0"]) == 2
    assert "--from and --to are for a config or a recording, and v0-to-v1 is a recipe" in capsys.readouterr().err

"""`rlaudit compare RECORDING`, which needs no option: both sides, the sampling and the weights are in it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recorded_worlds import World
from written_recording import WrittenProcess, lines_of, put_lines

from rlaudit.cli.app import run
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate

R = Path("r")


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, json_report: Callable[..., Any]) -> Callable[..., Any]:
    """The JSON report of the recording `r` and what else is named."""
    monkeypatch.chdir(tmp_path)
    return partial(json_report, "compare", "r")


def judged(report: Any) -> tuple[int, str, str | None, str]:
    """The exit code, the semantic verdict with its cause, and the verdict on the inference path."""
    semantic, path, *_ = report["layers"]
    return report["exit_code"], semantic["verdict"], semantic["cause"], path["verdict"]


def test_honest_logprobs_show_nothing(compare: Any) -> None:
    World().write(R)
    report = compare()
    assert judged(report) == (0, "nothing found", None, "match")
    (one,) = report["comparisons"]
    assert (one["compared_tokens"], one["faults"]["count"]) == (one["tokens"], 0)


def test_raw_logprobs_at_another_temperature_are_named_without_an_option(compare: Any) -> None:
    World(raw=True).write(R)
    report = compare()
    assert judged(report)[:3] == (1, "mismatch", "raw-logprobs")
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.7


def test_what_the_engine_was_configured_with_shows_nothing(compare: Any) -> None:
    World().write(R)
    put_lines(R, [line.replace(b"processed_logprobs", b"raw_logprobs") for line in lines_of(R)])
    report = compare()
    assert judged(report)[1] == "nothing found"
    assert any("logprobs_mode raw_logprobs" in one for one in report["comparisons"][0]["notes"])


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ({"30": 2.0, "4": -1.5}, [[4, -1.5], [30, 2.0]]),
        ({"left_out": "9b1b4b13"}, []),  # redacted
        ({str(token): -100.0 for token in range(500)}, []),  # the recorder keeps no more of them
    ],
    ids=["whole", "redacted", "cut off"],
)
def test_a_recorded_bias_is_part_of_what_tokens_were_sampled_from_if_it_is_whole(
    compare: Any, written: dict[str, Any], known: list[Any]
) -> None:
    World(updates=1, prompts=2).write(R, logit_bias=written)
    report = compare()
    assert report["comparisons"][0]["sampling"]["logit_bias"] == known
    assert any("logit_bias" in line for line in report["not_seen"]) == (not known)


def test_options_win_over_what_was_recorded(compare: Any) -> None:
    World().write(R)
    assert compare("--temperature", "0.9")["comparisons"][0]["sampling"]["temperature"] == 0.9


def test_a_trainer_with_later_weights_shows_its_lag_and_no_wrong_weights(compare: Any) -> None:
    World(late=True).write(R)
    report = compare()
    assert (report["layers"][1]["verdict"], report["layers"][1]["cause"]) == ("mismatch", None)
    (drawn,) = report["token_figures"]
    assert [one["lag"] for one in drawn["lags"]] == [1]


def test_recordings_without_a_trainer_are_judged_by_samples_of_one_prompt(compare: Any) -> None:
    World(trainer=False, raw=True, prompts=24, samples=8).write(R)
    report = compare()
    assert report["exit_code"] in (1, 3)
    assert "several samples of a prompt have the same beginning" in json.dumps(report)


def test_two_recordings_are_held_against_each_other(compare: Any) -> None:
    World().write(Path("before"))
    World(raw=True).write(R)
    report = compare("--before", "before")
    assert judged(report)[:3] == (1, "mismatch", "raw-logprobs")
    assert [one["is_before"] for one in report["comparisons"]] == [True, False]


def test_what_is_missing_stands_in_the_report(compare: Any) -> None:
    World(raw=True).write(R, ended=False)
    assert any("no orderly end" in one for one in compare()["not_seen"])


def test_damaged_lines_end_it_with_3_unless_they_are_allowed(compare: Any) -> None:
    World(raw=True).write(R)
    put_lines(R, [*lines_of(R), b'{"kind":"sequ'])
    assert run(["compare", "r"]) == 3
    assert run(["compare", "r", "--allow-partial"]) == 1


@pytest.mark.usefixtures("compare")
def test_what_cannot_be_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    World().write(R)
    WrittenProcess(Path("empty")).write()
    for words, code, said in ((["r", "--state", "state"], 2, "--state"), (["empty"], 3, "no sequence")):
        assert run(["compare", *words]) == code
        assert said in capsys.readouterr().err


@pytest.fixture
def rows(compare: Any) -> list[dict[str, Any]]:
    """The trainer's table beside `r`, which holds no trainer, as it may be written."""
    World(raw=True).write(Path("whole"))
    World(raw=True, trainer=False).write(R)
    (table,) = open_tables(Path("whole"))
    batch = concatenate(table.batches(Faults(), PromptNumbers()))
    rows = []
    for number in reversed(range(batch.sequences)):
        tokens = slice(*batch.offsets[number : number + 2])
        rows.append(
            {
                "prompt_id": f"question {number // 4}",
                "sample_id": number,
                "step": 7,
                "prompt_token_ids": batch.prompt_token_ids_S[number].tolist(),
                "token_id": batch.token_id_T[tokens].tolist(),
                "trainer_logprob": batch.trainer_logprobs_T[tokens].tolist(),
            }
        )
    return [*rows, {**rows[0], "sample_id": -1, "token_id": [900] * len(rows[0]["token_id"])}]


@pytest.mark.parametrize("more", [{}, {"prompt_token_ids": None}], ids=["by prompt and completion", "by completion"])
def test_a_trainers_table_is_joined_by_the_ids_of_its_tokens(compare: Any, rows: Any, more: dict[str, None]) -> None:
    Path("trainer.jsonl").write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
    report = compare("trainer.jsonl")
    (one,) = report["comparisons"]
    assert (one["compared_tokens"], one["faults"]["count"]) == (one["tokens"], 0)
    assert judged(report)[:3] == (1, "mismatch", "raw-logprobs")
    assert any("1 sequences of" in said and "were not recorded" in said for said in one["notes"])


@pytest.mark.parametrize("more", [{"prompt_token_ids": [1, 2]}, {"token_id": None}], ids=["other prompts", "no ids"])
def test_a_table_of_other_prompts_or_without_token_ids_is_not_joined(
    rows: Any, more: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trainer.jsonl").write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
    assert run(["compare", "r", "trainer.jsonl"]) == 3
    assert "token_id" in capsys.readouterr().err or "token_id" not in more

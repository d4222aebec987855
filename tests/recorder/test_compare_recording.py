"""`rlaudit compare RECORDING`, which needs no option: both sides, the sampling and the weights are in it."""

import json

import pytest
from recorded_worlds import World
from written_recording import WrittenProcess

from rlaudit.cli.app import run


def compared(folder, *more):
    out = folder.parent / "report.json"
    code = run(["compare", str(folder), "--quiet", "--output", f"json:{out}", *more])
    return code, json.loads(out.read_text()) if out.exists() else None


def layer(report, number=0):
    return report["layers"][number]["verdict"], report["layers"][number]["cause"]


def test_honest_logprobs_show_nothing(tmp_path):
    code, report = compared(World().write(tmp_path / "r"))
    assert (code, layer(report)[0]) == (0, "nothing found")
    assert layer(report, 1) == ("match", None)
    (one,) = report["comparisons"]
    assert (one["compared_tokens"], one["faults"]["count"]) == (one["tokens"], 0)


def test_raw_logprobs_at_another_temperature_are_named_without_an_option(tmp_path):
    code, report = compared(World(raw=True).write(tmp_path / "r"))
    assert (code, layer(report)) == (1, ("mismatch", "raw-logprobs"))
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.7


def test_what_the_engine_was_configured_with_shows_nothing(tmp_path):
    folder = World().write(tmp_path / "r")
    file = next(folder.glob("*.jsonl"))
    file.write_text(file.read_text().replace("processed_logprobs", "raw_logprobs"))
    _, report = compared(folder)
    assert layer(report)[0] == "nothing found"
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
def test_a_recorded_bias_is_part_of_what_tokens_were_sampled_from_if_it_is_whole(tmp_path, written, known):
    world = World(updates=1, prompts=2)
    _, report = compared(world.write(tmp_path / "r", logit_bias=written))
    assert report["comparisons"][0]["sampling"]["logit_bias"] == known
    assert any("logit_bias" in line for line in report["not_seen"]) == (not known)


def test_options_win_over_what_was_recorded(tmp_path):
    _, report = compared(World().write(tmp_path / "r"), "--temperature", "0.9")
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.9


def test_a_trainer_with_later_weights_shows_its_lag_and_no_wrong_weights(tmp_path):
    _, report = compared(World(late=True).write(tmp_path / "r"))
    assert layer(report, 1) == ("mismatch", None)
    (drawn,) = report["token_figures"]
    assert [one["lag"] for one in drawn["lags"]] == [1]


def test_recordings_without_a_trainer_are_judged_by_samples_of_one_prompt(tmp_path):
    code, report = compared(World(trainer=False, raw=True, prompts=24, samples=8).write(tmp_path / "r"))
    assert code in (1, 3)
    assert "samples of one prompt" in json.dumps(report)


def test_two_recordings_are_held_against_each_other(tmp_path):
    before = World().write(tmp_path / "before")
    code, report = compared(World(raw=True).write(tmp_path / "r"), "--before", str(before))
    assert (code, layer(report)) == (1, ("mismatch", "raw-logprobs"))
    assert [one["is_before"] for one in report["comparisons"]] == [True, False]


def test_what_is_missing_stands_in_the_report(tmp_path):
    folder = World(raw=True).write(tmp_path / "r", ended=False)
    _, report = compared(folder)
    assert any("no orderly end" in one for one in report["not_seen"])


def test_damaged_lines_end_it_with_3_unless_they_are_allowed(tmp_path):
    folder = World(raw=True).write(tmp_path / "r")
    file = next(folder.glob("*.jsonl"))
    file.write_text(file.read_text() + '{"kind":"sequ')
    assert compared(folder)[0] == 3
    assert compared(folder, "--allow-partial")[0] == 1


def test_nothing_of_a_recording_is_kept_by_file(tmp_path, capsys):
    code = run(["compare", str(World().write(tmp_path / "r")), "--state", str(tmp_path / "state")])
    assert code == 2
    assert "--state" in capsys.readouterr().err


def test_a_recording_without_a_sequence_says_so(tmp_path, capsys):
    code = run(["compare", str(WrittenProcess(tmp_path / "r").write())])
    assert code == 3
    assert "no sequence" in capsys.readouterr().err


@pytest.fixture
def both(tmp_path):
    """A recording without its trainer, and the trainer's table as it may write one."""
    from rlaudit.tokens.fault import Faults
    from rlaudit.tokens.open_table import open_tables
    from rlaudit.tokens.prompt_numbers import PromptNumbers
    from rlaudit.tokens.token_batch import concatenate

    world = World(raw=True)
    (table,) = open_tables(world.write(tmp_path / "whole"))
    batch = concatenate(table.batches(Faults(), PromptNumbers()))
    rows = []
    for number in reversed(range(batch.sequences)):
        begin, end = batch.offsets[number : number + 2]
        rows.append(
            {
                "prompt_id": f"question {number // 4}",
                "sample_id": number,
                "step": 7,
                "prompt_token_ids": batch.prompt_token_ids_S[number].tolist(),
                "token_id": batch.token_id_T[begin:end].tolist(),
                "trainer_logprob": batch.trainer_logprobs_T[begin:end].tolist(),
            }
        )
    rows.append({**rows[0], "sample_id": -1, "token_id": [900] * len(rows[0]["token_id"])})
    return World(raw=True, trainer=False).write(tmp_path / "r"), rows, tmp_path / "trainer.jsonl"


def test_a_trainers_table_is_joined_by_the_ids_of_prompt_and_completion(both):
    folder, rows, table = both
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, report = compared(folder, str(table))
    (one,) = report["comparisons"]
    assert one["faults"]["count"] == 0
    assert one["compared_tokens"] == one["tokens"]
    assert (code, layer(report)) == (1, ("mismatch", "raw-logprobs"))
    assert any("1 sequences of" in said and "were not recorded" in said for said in one["notes"])


def test_a_table_without_prompts_is_joined_by_the_completion_alone(both):
    folder, rows, table = both
    table.write_text("".join(json.dumps({**row, "prompt_token_ids": None}) + "\n" for row in rows))
    code, report = compared(folder, str(table))
    assert report["comparisons"][0]["compared_tokens"] == report["comparisons"][0]["tokens"]
    assert (code, layer(report)) == (1, ("mismatch", "raw-logprobs"))


def test_the_same_completion_of_another_prompt_is_no_partner(both):
    folder, rows, table = both
    table.write_text("".join(json.dumps({**row, "prompt_token_ids": [1, 2]}) + "\n" for row in rows))
    assert run(["compare", str(folder), str(table)]) == 3


def test_a_table_without_token_ids_cannot_be_joined(both, capsys):
    folder, rows, table = both
    table.write_text("".join(json.dumps({**row, "token_id": None}) + "\n" for row in rows))
    assert run(["compare", str(folder), str(table)]) == 3
    assert "token_id" in capsys.readouterr().err

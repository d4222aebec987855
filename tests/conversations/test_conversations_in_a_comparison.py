"""What `compare` says of a log of conversations."""

import json

import pytest
from conversation_logs import CHANGES, conversations, written

from rlaudit.cli.app import run


@pytest.fixture
def compared(tmp_path):
    def compare(made, *words, name="log.jsonl"):
        report = tmp_path / "report.json"
        log = written(tmp_path / name, made)
        code = run(["compare", str(log), "--temperature", "1", "--quiet", "--output", f"json:{report}", *words])
        return code, json.loads(report.read_text())

    return compare


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_trainer_that_scores_behind_other_tokens_is_named_by_its_cause(change, compared):
    made = conversations(change, dose=0.3)
    code, report = compared(made)
    (table,) = report["comparisons"]
    assert (code, report["layers"][0]["cause"]) == (1, "history-rendered-anew")
    after = f"turns after a changed history ({100 * made.after / made.tokens:.0f} % of all tokens)"
    assert after in report["layers"][0]["because"]
    assert (table["conversations"]["changed"], table["conversations"]["turns"]) == (made.changed, 320)
    assert table["conversations"]["k3_after"]["low"] > 10 * table["conversations"]["k3_others"]["high"]


@pytest.mark.parametrize("dose", [0.3, 1.0])
def test_a_trainer_that_scores_behind_what_was_sent_is_shown_the_turns_and_passes(dose, compared):
    made = conversations("reasoning left out", dose=dose, trainer="as sent")
    code, report = compared(made)
    (table,) = report["comparisons"]
    assert (code, [layer["cause"] for layer in report["layers"]]) == (0, [None, None, None])
    assert table["conversations"]["changed"] == made.changed


def test_an_unchanged_history_is_silent(compared, capsys):
    code, report = compared(conversations(dose=0.0), "--output", "text")
    assert code == 0
    assert report["comparisons"][0]["conversations"]["changed"] == 0
    printed = capsys.readouterr().out
    assert "all 280 later turns of 40 conversations begin with what was sent and sampled before" in printed
    assert "\nConversations" not in printed


def test_changed_turns_stand_before_the_layers(compared, capsys):
    compared(conversations("encoded again", dose=0.3), "--output", "text")
    printed = capsys.readouterr().out
    assert printed.index("later turns begin with other tokens") < printed.index("1. semantic")


def test_a_log_of_single_turns_has_no_conversations(compared):
    _, report = compared(conversations(turns=1))
    assert "conversations" not in report["comparisons"][0]


def test_the_cause_needs_turns_whose_history_is_unchanged(compared):
    made = conversations("encoded again", dose=1.0)
    made.records = [record for record in made.records if not record["prompt_id"].endswith(".0")]
    _, report = compared(made)
    assert report["layers"][0]["cause"] != "history-rendered-anew"


def test_turns_of_another_step_with_the_same_names_are_others(compared):
    first, second = (conversations("encoded again", dose=dose, conversations=20, seed=7) for dose in (0.0, 0.5))
    for step, made in enumerate((first, second)):
        for record in made.records:
            record["step"] = step
    first.records += second.records
    _, report = compared(first)
    (table,) = report["comparisons"]
    # The steps share their first turns, which nothing precedes.
    assert table["conversations"]["changed"] == second.changed
    assert table["conversations"]["k3_others"]["value"] < 1e-3

"""Rules about what the returned logprobs are of, over versions, engines, trainers and sampling."""

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.filters_not_replayed import RULE as FILTERS
from rlaudit.rules.logits_instead_of_logprobs import RULE as LOGITS
from rlaudit.rules.processed_before_temperature import RULE as HALF_PROCESSED
from rlaudit.rules.processed_for_a_plain_trainer import RULE as PLAIN_TRAINER
from rlaudit.rules.prompt_logprobs_recompute import RULE as PROMPT_LOGPROBS
from rlaudit.rules.raw_logprobs import RULE as RAW

V0 = {"VLLM_USE_V1": "0"}
DIVIDING = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "replays_filters": False}
PLAIN = {**DIVIDING, "divides_by_temperature": False}
PROCESSED = {"logprobs_mode": "processed_logprobs"}


def config(to, *, today=None, t=0.7, engine=None, trainer=DIVIDING, environment=None, **sampling):
    """One audit; `today` with V0 unless the environment says otherwise."""
    sampling = {"temperature": t, **sampling} if t is not None else sampling
    example = {"to": to, "engine": engine or {}, "sampling": sampling, "trainer": trainer}
    example["environment"] = environment or {}
    if today:
        example |= {"from": today, "at_from": {"environment": V0}}
    return example


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0", "0.10.1.1", "0.10.2", "0.18.1", "0.32.0"])
def test_raw_logprobs_of_every_v1_are_an_error_for_a_trainer_that_divides(version):
    v1 = {"VLLM_USE_V1": "1"}
    assert severities(RAW, config(version, today="0.8.5", environment=v1)) == [Severity.ERROR]


def test_the_migration_names_both_versions_and_what_each_returns():
    [finding] = findings(RAW, config("0.18.1", today="0.8.5"))
    assert "0.8.5 (V0) returned processed" in finding.message
    assert "0.18.1 returns raw" in finding.message
    assert "0.7" in finding.message


def test_raw_logprobs_are_wrong_without_a_migration_as_well():
    assert severities(RAW, config("0.18.1")) == [Severity.ERROR]


def test_v0_returns_processed_logprobs_whatever_logprobs_mode_says():
    example = config("0.10.2", environment=V0, engine={"logprobs_mode": "raw_logprobs"})
    assert findings(RAW, example) == []


def test_processed_logprobs_of_0_10_2_and_later_are_not_raw():
    assert findings(RAW, config("0.18.1", today="0.8.5", engine=PROCESSED)) == []


def test_at_temperature_one_raw_logprobs_are_a_note():
    assert severities(RAW, config("0.18.1", today="0.8.5", t=1.0)) == [Severity.NOTE]


def test_a_trainer_that_does_not_divide_needs_raw_logprobs():
    assert findings(RAW, config("0.18.1", today="0.8.5", trainer=PLAIN)) == []


@pytest.mark.parametrize(
    "corrects, recomputes, severity",
    [
        (False, True, Severity.WARNING),
        (True, True, Severity.ERROR),
        (False, False, Severity.ERROR),
        (None, True, Severity.ERROR),
        (False, None, Severity.ERROR),
        (None, None, Severity.ERROR),
    ],
)
def test_raw_logprobs_that_enter_no_loss_spoil_only_what_is_logged(corrects, recomputes, severity):
    facts = {"importance_sampling_correction": corrects, "recomputes_old_logprobs": recomputes}
    trainer = DIVIDING | {name: value for name, value in facts.items() if value is not None}
    [finding] = findings(RAW, config("0.18.1", trainer=trainer))
    assert finding.severity is severity
    assert ("ratios are wrong" in finding.message) == (severity is Severity.ERROR)


@pytest.mark.parametrize("cut", [{"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.05}])
def test_a_program_that_neither_trains_nor_asks_for_logprobs_has_nobody_to_replay_its_filters(cut):
    alone = config("0.18.1", trainer={}, **cut) | {"offline": True}
    assert severities(FILTERS, alone) == []
    asking = config("0.18.1", trainer={}, logprobs=0, **cut) | {"offline": True}
    assert severities(FILTERS, asking) == [Severity.NOTE]
    served = config("0.18.1", trainer={}, **cut)
    assert severities(FILTERS, served) == [Severity.NOTE]
    assert severities(FILTERS, config("0.18.1", **cut) | {"offline": True}) == [Severity.WARNING]


def test_logprobs_that_nobody_reads_may_be_raw():
    unused = {**DIVIDING, "uses_rollout_logprobs": False}
    assert findings(RAW, config("0.18.1", today="0.8.5", trainer=unused)) == []


def test_an_unknown_temperature_is_a_warning_that_says_why_it_is_unknown():
    [finding] = findings(RAW, config("0.18.1", today="0.8.5", t={"unknown": "$TEMP is set nowhere"}))
    assert finding.severity is Severity.WARNING
    assert "$TEMP is set nowhere" in finding.message


@pytest.mark.parametrize("t, severity", [(0.7, Severity.WARNING), (1.0, Severity.NOTE)])
def test_a_mode_that_another_file_decides_weighs_as_much_as_the_temperature_makes_it(t, severity):
    [finding] = findings(RAW, config("0.18.1", t=t, engine={"logprobs_mode": {"unknown": "base.yaml says it"}}))
    assert finding.severity is severity
    assert "base.yaml says it" in finding.message


def test_a_temperature_that_no_file_names_is_not_taken_for_one():
    assert severities(RAW, config("0.18.1", today="0.8.5", t=None)) == [Severity.WARNING]


def test_a_server_without_any_trainer_and_without_a_change_is_no_more_than_a_note():
    assert severities(RAW, config("0.18.1", trainer={}, t=None)) == [Severity.NOTE]


def test_a_trainer_of_which_nothing_is_known_makes_a_changed_meaning_a_warning():
    assert severities(RAW, config("0.18.1", today="0.8.5", trainer={})) == [Severity.WARNING]


def test_a_trainer_that_replays_top_p_cannot_use_raw_logprobs_even_at_temperature_one():
    replaying = {**DIVIDING, "replays_filters": True}
    assert severities(RAW, config("0.18.1", t=1.0, top_p=0.9, trainer=replaying)) == [Severity.ERROR]


def test_the_fix_is_safe_only_where_it_restores_what_runs_today():
    [after_v0] = findings(RAW, config("0.18.1", today="0.8.5"))
    [without_migration] = findings(RAW, config("0.18.1"))
    assert after_v0.fix.safe
    assert not without_migration.fix.safe


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0", "0.10.1.1"])
def test_no_fix_is_offered_where_no_mode_returns_what_the_trainer_needs(version):
    [finding] = findings(RAW, config(version, environment={"VLLM_USE_V1": "1"}))
    assert finding.fix is None
    assert "0.10.2" in finding.message


def test_half_processed_logprobs_are_an_error_in_0_10_0_and_none_in_0_10_2():
    v1 = {"VLLM_USE_V1": "1"}
    assert severities(HALF_PROCESSED, config("0.10.0", engine=PROCESSED, environment=v1)) == [Severity.ERROR]
    assert findings(HALF_PROCESSED, config("0.10.2", engine=PROCESSED, environment=v1)) == []
    assert findings(HALF_PROCESSED, config("0.10.0", engine=PROCESSED, environment=v1, t=1.0)) == []
    assert findings(HALF_PROCESSED, config("0.10.0", engine=PROCESSED, environment=V0)) == []


def test_half_processed_logprobs_that_enter_no_loss_are_a_warning():
    recomputed = DIVIDING | {"recomputes_old_logprobs": True, "importance_sampling_correction": False}
    half = config("0.10.0", engine=PROCESSED, environment={"VLLM_USE_V1": "1"}, trainer=recomputed)
    assert severities(HALF_PROCESSED, half) == [Severity.WARNING]


def test_processed_logprobs_disagree_with_a_plain_trainer_and_raw_ones_do_not():
    assert severities(PLAIN_TRAINER, config("0.18.1", engine=PROCESSED, trainer=PLAIN)) == [Severity.WARNING]
    assert severities(PLAIN_TRAINER, config("0.8.5", environment=V0, trainer=PLAIN)) == [Severity.WARNING]
    assert findings(PLAIN_TRAINER, config("0.18.1", trainer=PLAIN)) == []
    assert findings(PLAIN_TRAINER, config("0.18.1", engine=PROCESSED, trainer=PLAIN, t=1.0)) == []
    assert findings(PLAIN_TRAINER, config("0.18.1", engine=PROCESSED)) == []


def test_logits_are_never_logprobs():
    assert severities(LOGITS, config("0.18.1", engine={"logprobs_mode": "raw_logits"})) == [Severity.ERROR]
    assert findings(LOGITS, config("0.18.1", engine=PROCESSED)) == []


@pytest.mark.parametrize(
    "engine, words", [(PROCESSED, "kept mass"), ({}, "unseen")], ids=["processed logprobs", "raw logprobs"]
)
def test_filters_are_reported_in_both_modes_each_with_its_own_consequence(engine, words):
    [finding] = findings(FILTERS, config("0.18.1", t=1.0, top_p=0.9, engine=engine))
    assert finding.severity is Severity.WARNING
    assert "top_p=0.9" in finding.message
    assert words in finding.message


@pytest.mark.parametrize(
    "facts, t, says",
    [({}, 1.0, True), ({}, 0.7, False), ({"uses_rollout_logprobs": False}, 1.0, False),
     ({"divides_by_temperature": False}, 0.7, True)],
)  # fmt: skip
def test_raw_logprobs_are_kept_where_processed_ones_would_add_the_kept_mass(facts, t, says):
    [finding] = findings(FILTERS, config("0.18.1", t=t, top_p=0.9, trainer=DIVIDING | facts))
    assert ("processed ones would not mend that" in finding.message) == says


def test_the_kept_mass_is_of_the_logged_mismatch_where_old_logprobs_are_recomputed():
    recomputed = DIVIDING | {"recomputes_old_logprobs": True, "importance_sampling_correction": False}
    [finding] = findings(FILTERS, config("0.18.1", top_p=0.9, engine=PROCESSED, trainer=recomputed))
    assert "mean ratio of the logged mismatch" in finding.message


def test_neutral_filters_and_replayed_filters_are_fine():
    assert findings(FILTERS, config("0.18.1", top_p=1.0, top_k=-1, min_p=0.0)) == []
    assert findings(FILTERS, config("0.18.1", top_k=1_000_000)) == []  # more than any vocabulary
    assert findings(FILTERS, config("0.18.1", top_p=0.9, trainer={**DIVIDING, "replays_filters": True})) == []


def test_an_unknown_filter_is_a_note_with_the_reason():
    [finding] = findings(FILTERS, config("0.18.1", top_p={"unknown": "set by --top-p at start"}))
    assert finding.severity is Severity.NOTE
    assert "set by --top-p at start" in finding.message


def test_prompt_logprobs_lose_the_temperature_in_v1_even_when_processed():
    recomputing = {**DIVIDING, "reads_prompt_logprobs": True}
    example = config("0.18.1", today="0.8.5", engine=PROCESSED, trainer=recomputing)
    assert severities(PROMPT_LOGPROBS, example) == [Severity.ERROR]
    assert findings(PROMPT_LOGPROBS, config("0.18.1", today="0.8.5", t=1.0, trainer=recomputing)) == []
    assert findings(PROMPT_LOGPROBS, config("0.9.2", environment=V0, trainer=recomputing)) == []

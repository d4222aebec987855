"""Rules about what the returned logprobs are of, over versions, engines, trainers and sampling."""

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.filters_not_replayed import RULE as FILTERS
from rlaudit.rules.raw_logprobs import RULE as RAW

V0 = {"VLLM_USE_V1": "0"}
DIVIDING = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "replays_filters": False}
PROCESSED = {"logprobs_mode": "processed_logprobs"}


def config(to, *, today=None, t=0.7, engine=None, trainer=DIVIDING, environment=None, **sampling):
    """One audit; `today` with V0 unless the environment says otherwise."""
    sampling = {"temperature": t, **sampling} if t is not None else sampling
    example = {"to": to, "engine": engine or {}, "sampling": sampling, "trainer": trainer}
    example["environment"] = environment or {}
    if today:
        example |= {"from": today, "at_from": {"environment": V0}}
    return example


def test_the_migration_names_both_versions_and_what_each_returns():
    [finding] = findings(RAW, config("0.18.1", today="0.8.5"))
    assert "0.8.5 (V0) returned processed" in finding.message
    assert "0.18.1 returns raw" in finding.message
    assert "0.7" in finding.message


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


def test_an_unknown_temperature_is_a_warning_that_says_why_it_is_unknown():
    [finding] = findings(RAW, config("0.18.1", today="0.8.5", t={"unknown": "$TEMP is set nowhere"}))
    assert finding.severity is Severity.WARNING
    assert "$TEMP is set nowhere" in finding.message


@pytest.mark.parametrize("t, severity", [(0.7, Severity.WARNING), (1.0, Severity.NOTE)])
def test_a_mode_that_another_file_decides_weighs_as_much_as_the_temperature_makes_it(t, severity):
    [finding] = findings(RAW, config("0.18.1", t=t, engine={"logprobs_mode": {"unknown": "base.yaml says it"}}))
    assert finding.severity is severity
    assert "base.yaml says it" in finding.message


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0", "0.10.1.1"])
def test_no_fix_is_offered_where_no_mode_returns_what_the_trainer_needs(version):
    [finding] = findings(RAW, config(version, environment={"VLLM_USE_V1": "1"}))
    assert finding.fix is None
    assert "0.10.2" in finding.message


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


def test_an_unknown_filter_is_a_note_with_the_reason():
    [finding] = findings(FILTERS, config("0.18.1", top_p={"unknown": "set by --top-p at start"}))
    assert finding.severity is Severity.NOTE
    assert "set by --top-p at start" in finding.message

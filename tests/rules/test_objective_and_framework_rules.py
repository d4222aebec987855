"""Rules about what the objective may and may not correct, and about the framework that moves with vLLM."""

from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.inspection.selection import known_rules
from rlaudit.rules.correction_hides_a_backend_mismatch import DISTORTING
from rlaudit.rules.correction_hides_a_backend_mismatch import RULE as CORRECTION
from rlaudit.rules.framework_default_moved import RULE as DEFAULT_MOVED
from rlaudit.rules.framework_moves_too import RULE as MOVES_TOO

MOVE = {"from": "0.8.5", "to": "0.18.1"}
OPEN = {"unknown": "TRL's default is 0.9 before 0.18 and 1.0 from there on"}


def test_a_correction_over_a_semantic_error_names_the_rule_to_resolve_first():
    trainer = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "importance_sampling_correction": True}
    example = {"to": "0.18.1", "sampling": {"temperature": 0.7}, "trainer": trainer}
    [finding] = findings(CORRECTION, example)
    assert finding.severity is Severity.WARNING
    assert "raw-logprobs" in finding.message


def test_every_rule_that_a_correction_can_hide_exists():
    assert set(DISTORTING) <= set(known_rules())


def test_what_may_have_moved_is_a_note_with_the_reason():
    left = {"framework": "trl", "set_by_framework": ["temperature"], "sampling": {"temperature": 1.0}}
    (finding,) = findings(DEFAULT_MOVED, MOVE | left | {"at_from": {"sampling": {"temperature": OPEN}}})
    assert finding.severity is Severity.NOTE
    assert "0.9 before 0.18" in finding.message and "1.0 in the release that vLLM 0.18.1 needs" in finding.message


def test_a_pin_that_does_not_run_with_the_new_release_is_an_error_and_the_only_one():
    pin = {"where": "requirements.txt:3", "because": "pins TRL 0.18.0"}
    ranges = {"releases": ["1.6", None], "at_from": {"releases": ["0.18", "0.24"]}}
    (finding,) = findings(MOVES_TOO, {**MOVE, **ranges, "refused_pin": pin})
    assert finding.severity is Severity.ERROR and finding.setting == "requirements.txt:3"

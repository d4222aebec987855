from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.framework_default_moved import RULE

MOVE = {"from": "0.8.5", "to": "0.18.1", "framework": "trl"}
OPEN = {"unknown": "TRL's default is 0.9 before 0.18 and 1.0 from there on"}


def severities(**example):
    return [finding.severity for finding in findings(RULE, MOVE | example)]


def test_a_distribution_that_moves_by_the_framework_is_a_warning_and_a_correction_a_note():
    left = {"set_by_framework": ["temperature", "importance_sampling_correction"]}
    assert severities(sampling={"temperature": 1.0}, at_from={"sampling": {"temperature": 0.9}}, **left) == [
        Severity.WARNING
    ]
    before = {"trainer": {"importance_sampling_correction": False}}
    assert severities(trainer={"importance_sampling_correction": True}, at_from=before, **left) == [Severity.NOTE]


def test_what_may_have_moved_is_a_note_with_the_reason():
    left = {"set_by_framework": ["temperature"], "sampling": {"temperature": 1.0}}
    (finding,) = findings(RULE, MOVE | left | {"at_from": {"sampling": {"temperature": OPEN}}})
    assert finding.severity is Severity.NOTE
    assert "0.9 before 0.18" in finding.message and "1.0 in the release that vLLM 0.18.1 needs" in finding.message


def test_a_top_k_that_cuts_nothing_off_is_spelled_in_three_ways():
    left = {"set_by_framework": ["top_k"], "sampling": {"top_k": 0}}
    assert severities(**left, at_from={"sampling": {"top_k": 50}}) == [Severity.WARNING]
    assert not severities(**left, at_from={"sampling": {"top_k": -1}})


def test_what_the_file_says_or_both_releases_say_alike_is_left_alone():
    before = {"at_from": {"sampling": {"temperature": 0.9}}}
    assert not severities(sampling={"temperature": 1.0}, **before)
    same = {"at_from": {"sampling": {"temperature": 1.0}}, "set_by_framework": ["temperature"]}
    assert not severities(sampling={"temperature": 1.0}, **same)

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.framework_moves_too import RULE

MOVE = {"from": "0.8.5", "to": "0.18.1"}


@pytest.mark.parametrize(("before", "after", "said"), [
    (["0.18", "0.24"], ["1.6", None], True), (["0.18", "1.6"], ["1.6", None], True),
    (["0.18", "1.7"], ["1.6", None], False), (["0.18", None], ["1.6", None], False),
])  # fmt: skip
def test_ranges_that_do_not_meet_are_a_warning(before, after, said):
    found = findings(RULE, {**MOVE, "releases": after, "at_from": {"releases": before}})
    assert [one.severity for one in found] == [Severity.WARNING] * said


def test_nothing_is_reported_if_no_range_is_known():
    assert not findings(RULE, {**MOVE, "releases": ["1.6", None]})


def test_a_pin_that_does_not_run_with_the_new_release_is_an_error_and_the_only_one():
    pin = {"where": "requirements.txt:3", "because": "pins TRL 0.18.0"}
    ranges = {"releases": ["1.6", None], "at_from": {"releases": ["0.18", "0.24"]}}
    (finding,) = findings(RULE, {**MOVE, **ranges, "refused_pin": pin})
    assert finding.severity is Severity.ERROR and finding.setting == "requirements.txt:3"

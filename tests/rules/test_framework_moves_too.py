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


def test_nothing_is_said_where_nothing_is_known_or_a_stop_says_it():
    assert not findings(RULE, {**MOVE, "releases": ["1.6", None]})
    stops = [{"where": "requirements.txt:3", "what": "pins it", "certain": True}]
    ranges = {"releases": ["1.6", None], "at_from": {"releases": ["0.18", "0.24"]}}
    assert not findings(RULE, {**MOVE, **ranges, "stops": stops})

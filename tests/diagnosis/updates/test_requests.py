"""How requests end around an update."""

from dataclasses import asdict

from flights import flight

from rlaudit.diagnosis.updates.requests import count_requests


def test_every_way_to_end_is_counted_once() -> None:
    flights = [
        flight("flight", 0, [0, 1]),
        flight("flight", 1, [0], finish_reason="abort", max_tokens=2),
        flight("flight", 2, [0], max_tokens=2),
        flight("flight", 3, [0, 0, 1], max_tokens=2),
        flight("flight", 4, [0], lost=True, finish_reason=None),
        flight("flight", 5, [0], error="EngineDeadError: ", finish_reason=None),
        flight("flight", 6, [0, 1], ends=2),
    ]
    count = count_requests(flights, paused=True)
    assert asdict(count) == {
        "submitted": 7,
        "completed": 1,
        "aborted": 1,
        "truncated": 1,
        "duplicated": 2,
        "lost": 1,
        "failed": 1,
        "leaked_tokens": 0,
    }
    assert not count.in_order
    assert count.ends == {"completed": 1, "aborted": 1, "truncated": 1, "duplicated": 2, "lost": 1, "failed": 1}


def test_an_abort_is_in_order() -> None:
    assert count_requests([flight("flight", 0, [0], finish_reason="abort", max_tokens=9)], paused=True).in_order


def test_a_token_of_no_version_is_a_leak_only_where_there_was_a_pause() -> None:
    flights = [flight("flight", 0, [0, None, 1])]
    assert count_requests(flights, paused=True).leaked_tokens == 1
    assert count_requests(flights, paused=False).in_order


def test_a_request_without_any_end_is_lost() -> None:
    assert count_requests([flight("flight", 0, [0], finish_reason=None)], paused=True).lost == 1

import threading

import pytest
from laboratories import PATIENCE_SECONDS

from rlaudit.tokens.parallel_map import parallel_map


def test_results_come_in_the_order_of_the_items():
    first_may_end = threading.Event()

    def double(number):
        if number == 0:
            assert first_may_end.wait(PATIENCE_SECONDS)
        else:
            first_may_end.set()
        return 2 * number

    assert list(parallel_map(double, range(20), threads=3)) == list(range(0, 40, 2))


def test_no_more_items_are_taken_than_threads_can_work_on():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = parallel_map(lambda number: number, items(), threads=2)
    assert next(results) == 0
    assert len(taken) == 3


def test_an_exception_comes_through_at_its_item():
    def invert(number):
        return 1 / number

    results = parallel_map(invert, [2, 0, 4], threads=2)
    assert next(results) == 0.5
    with pytest.raises(ZeroDivisionError):
        next(results)

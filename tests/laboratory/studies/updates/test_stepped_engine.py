"""An engine that is stepped from our own loop: what one step raises is every later request's answer."""

import asyncio

import pytest

from rlaudit.engines.inside.scripts.steerable_engine import SteppedEngine


class BrokenEngine:
    def has_unfinished_requests(self):
        return True

    def step(self):
        raise RuntimeError("this build needs another library")


def broken():
    engine = SteppedEngine.__new__(SteppedEngine)
    engine.engine, engine.waiting, engine.paused, engine.failure = BrokenEngine(), {}, False, None
    return engine


def test_after_a_step_that_failed_requests_in_flight_and_whatever_comes_later_get_its_error():
    async def played():
        engine = broken()
        await engine.check_health()
        engine.waiting["one"] = asyncio.Queue()
        await engine.prepare()
        await asyncio.wait_for(engine.loop_task, 10)
        assert str(engine.waiting["one"].get_nowait()) == "this build needs another library"
        later = (
            engine.check_health(),
            engine.pause("wait", False),
            engine.load({}),
            engine.generate("2", [1], {}, print),
        )
        for asked in later:
            with pytest.raises(RuntimeError, match="this build needs another library"):
                await asyncio.wait_for(asked, 10)

    asyncio.run(played())

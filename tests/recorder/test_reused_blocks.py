"""Which cached prompt tokens older weights had computed."""

import pytest
from written_recording import WrittenProcess

from rlaudit.recording.recording import open_recording
from rlaudit.recording.reused_blocks import reused_blocks, stale_sentences

RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
PAUSE = "vllm.v1.engine.core:EngineCoreProc.pause_scheduler"
RESUME = "vllm.v1.engine.core:EngineCore.resume_scheduler"
BLOCK = 16
SHARED = list(range(2 * BLOCK))


class Engine(WrittenProcess):
    """One process that is front end and engine core."""

    def sample(self, prompt, cached, others=0, **more):
        """One token of a prompt of which so many tokens were cached, and tokens of requests that are not kept."""
        step = self.step(1 + others)
        self.sequence(self.request(prompt, **more), prompt, [7], [-1.0], [[step, 1, 1]], cached=cached)

    def reused(self):
        """What each sequence took: cached, stale, outlived."""
        (served,) = open_recording(self.write()).served
        found = reused_blocks(served)
        return [
            (found[key].cached, found[key].stale, found[key].outlived)
            for key in sorted(found, key=lambda key: key.line)
        ]


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    engine.engine(instance_id="a")
    engine.sampling()
    return engine


def test_blocks_that_outlive_updates_are_stale_for_what_goes_on_from_them(engine):
    for round_ in range(3):
        engine.sample([*SHARED, 100 + round_], cached=2 * BLOCK if round_ else 0)
        engine.load()
    assert engine.reused() == [(0, 0, 0), (32, 32, 1), (32, 32, 2)]


def test_blocks_that_were_computed_anew_are_not_stale(engine):
    engine.sample([*SHARED, 100], cached=0)
    engine.load()
    engine.sample([*SHARED, 101], cached=BLOCK)  # the second block was no longer there
    engine.sample([*SHARED, 102], cached=2 * BLOCK)
    assert engine.reused() == [(0, 0, 0), (16, 16, 1), (32, 16, 1)]


def test_a_reset_with_each_update_leaves_nothing_stale(engine):
    for round_ in range(3):
        engine.sample([*SHARED, 100 + round_], cached=0)
        engine.sample([*SHARED, 200 + round_], cached=2 * BLOCK)
        engine.load()
        engine.call(RESET, result=True)
    assert {stale for _, stale, _ in engine.reused()} == {0}


def test_a_pause_that_empties_the_cache_before_the_update_leaves_nothing_stale(engine):
    engine.sample([*SHARED, 100], cached=0)
    engine.call(PAUSE, mode="keep", clear_cache=True)
    engine.call(RESET, result=True)
    engine.load()
    engine.call(RESUME)
    # Requests that were kept computed the block anew: no sequence that began since shows it.
    engine.sample([*SHARED, 101], cached=2 * BLOCK)
    assert engine.reused() == [(0, 0, 0), (32, 0, 0)]


@pytest.mark.parametrize("refusal", [{"result": False}, {"result": None, "in_flight": 3}])
def test_a_reset_that_was_refused_or_may_have_been_clears_nothing(engine, refusal):
    engine.sample([*SHARED, 100], cached=0)
    engine.load()
    engine.call(RESET, **refusal)
    engine.sample([*SHARED, 101], cached=2 * BLOCK)
    assert engine.reused() == [(0, 0, 0), (32, 32, 1)]


def test_what_a_request_that_is_not_kept_may_have_computed_is_unknown(engine):
    engine.sample([*SHARED, 100], cached=0)
    engine.load()
    engine.sample([*SHARED, 101], cached=2 * BLOCK, others=1)
    engine.sample([*SHARED, 102], cached=2 * BLOCK)
    assert engine.reused() == [(0, 0, 0), (32, None, 0), (32, None, 0)]
    (sentence,) = stale_sentences(reused_blocks(open_recording(engine.folder).served[0]).values())
    assert "it is unknown which weights" in sentence


def test_adapters_have_blocks_of_their_own(engine):
    engine.sample([*SHARED, 100], cached=0)
    engine.load()
    engine.sample([*SHARED, 101], cached=0, lora="one")
    engine.sample([*SHARED, 102], cached=2 * BLOCK, lora="one")
    assert [stale for _, stale, _ in engine.reused()] == [0, 0, 0]


def test_a_salted_prompt_is_not_judged(engine):
    engine.sample([*SHARED, 100], cached=0)
    engine.load()
    engine.sample([*SHARED, 101], cached=2 * BLOCK, salted=True)
    assert engine.reused()[1] == (32, None, 0)


def test_front_ends_of_one_engine_share_its_cache(tmp_path):
    parent, core = WrittenProcess(tmp_path, pid=100), WrittenProcess(tmp_path, pid=109, parent=100)
    parent.engine(instance_id="a")
    core.worker("a")
    fronts = [Engine(tmp_path, pid=101 + place, parent=100) for place in range(2)]
    for place, front in enumerate(fronts):
        front.engine(instance_id=f"of {place}")
        front.sampling()
    fronts[0].sample([*SHARED, 100], cached=0)
    core.now = fronts[0].now
    core.load()
    fronts[1].now = core.now
    fronts[1].sample([*SHARED, 101], cached=2 * BLOCK)
    for process in (parent, core, *fronts):
        process.write()
    (served,) = open_recording(tmp_path).served
    found = reused_blocks(served)
    assert sorted((one.cached, one.stale) for one in found.values()) == [(0, 0), (32, 32)]


def test_a_release_that_does_not_say_what_was_cached_says_nothing_of_its_age(engine):
    engine.step(1)
    engine.sequence(engine.request(SHARED), SHARED, [7], [-1.0], [[0, 1, 1]], cached=None)
    assert engine.reused() == []

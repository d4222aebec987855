"""How a recording's requests are asked again: in waves, and within one after as many steps as then."""

from pathlib import Path

from written_recording import WrittenProcess

from rlaudit.laboratory.recorded_requests import described, recorded_requests
from rlaudit.laboratory.studies.arms.rollout import requests_in_waves

FIRST, SECOND, THIRD = ([number] * 4 for number in (5, 6, 7))
TOKENS = 8


def recording(folder: Path) -> Path:
    """Two prompts at once; a third while they run, and shorter; then, under other weights, the second again."""
    front = WrittenProcess(folder)
    front.lines[0].update(versions={"vllm": "0.18.1"})
    front.put("engine", number=1, **{"class": "EngineArgs"}, written={"model": "m"}, effective={}, error=None)
    front.sampling(temperature=1.0, max_tokens=TOKENS)
    requests = {tuple(prompt): front.request(prompt) for prompt in (FIRST, SECOND, THIRD)}
    steps = [front.step(2) for _ in range(TOKENS)]
    # The one that came last is the first to end.
    for prompt, begins, ends in ((THIRD, 4, 6), (SECOND, 0, TOKENS), (FIRST, 0, TOKENS)):
        own = [[step, 1, 1] for step in steps[begins:ends]]
        front.sequence(requests[tuple(prompt)], prompt, [3] * len(own), [-1.0] * len(own), own)
    front.load()
    again = front.request(SECOND, index=1)
    front.sequence(again, SECOND, [4], [-1.0], [[front.step(1), 1, 1]], index=1)
    return front.write()


def test_prompts_come_again_in_the_order_and_after_as_many_steps_as_they_came(tmp_path: Path) -> None:
    found = recorded_requests(recording(tmp_path / "run"))
    assert [*map(list, found.prompts)] == [SECOND, FIRST, THIRD]
    assert (found.wave_P, found.arrival_P) == ((0, 0, 0), (0, 0, 4))
    asked = requests_in_waves(found, samples=2, seed=0)
    assert [(one["prompt"], one["after"]) for one in asked] == [(0, 0), (1, 0), (0, 0), (1, 0), (2, 4), (2, 4)]
    assert "1 prompts while others run" in described(found, 2)


def test_shorter_requests_arrive_as_much_sooner(tmp_path: Path) -> None:
    found = recorded_requests(recording(tmp_path / "run")).first(3, TOKENS // 2)
    assert (found.arrival_P, found.longest) == ((0, 0, 2), TOKENS // 2)
    assert found.first(3, TOKENS).arrival_P == (0, 0, 2)

"""Which cached prompt tokens older weights had computed."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from written_recording import WrittenProcess

from rlaudit.recording.reused_blocks import reused_blocks, stale_sentences
from rlaudit.recording.weight_updates import ServedEngine

TABLE = yaml.safe_load(Path(__file__).with_name("reused_blocks.yaml").read_text())


class Cached(WrittenProcess):
    """A front end with the word of reused_blocks.yaml."""

    def sample(self, last: int, cached: int | None, others: int = 0, **of_request: Any) -> None:
        self.sampled([*range(32), last], [7], cached=cached, others=others, of_request=of_request)


def reused(served: ServedEngine) -> list[list[int | None]]:
    """What each sequence took: cached, stale, outlived."""
    found = reused_blocks(served)
    return [
        [found[key].cached, found[key].stale, found[key].outlived] for key in sorted(found, key=lambda key: key.line)
    ]


@pytest.mark.parametrize("sentence", TABLE)
def test_cached_tokens_are_stale_or_not_as_the_table_says(sentence: str, tmp_path: Path) -> None:
    case, process = TABLE[sentence], Cached(tmp_path)
    process.engine(instance_id="a")
    process.sampling()
    served = process.play(case["course"]).served()
    assert reused(served) == case["reused"]
    assert case.get("said", "") in "\n".join(stale_sentences(reused_blocks(served).values()))


def test_front_ends_of_one_engine_share_its_cache(tmp_path: Path) -> None:
    parent = Cached(tmp_path)
    core = parent.beside(109, parent=100)
    parent.engine(instance_id="a")
    core.worker("a")
    fronts = [Cached(tmp_path, 101 + place, 100, parent.clock, everyone=parent.everyone) for place in range(2)]
    for place, front in enumerate(fronts):
        front.engine(instance_id=f"of {place}")
        front.sampling()
    fronts[0].sample(100, 0)
    core.load()
    fronts[1].sample(101, 32)
    assert sorted(one[:2] for one in reused(parent.served())) == [[0, 0], [32, 32]]

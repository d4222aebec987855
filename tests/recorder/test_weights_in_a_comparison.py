"""What was read of an engine's weights decides why its tokens are apart, and is no cause of what is not apart."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_worlds import Rows, World
from written_recording import WrittenProcess

NAMES = ("embed_tokens.weight", "norm.weight")


@dataclass(frozen=True)
class ReadWorld(World):
    """A world whose weights are read after each update. arrives: how much of each update the engine samples with.

    takes: whether its weights were seen to move. offset: how far they were from those that were sent at first.
    """

    temperature: float = 1.0
    updates: int = 6
    prompts: int = 12
    drift: float = 0.06
    arrives: float = 1.0
    takes: bool = True
    offset: float = 0.0
    dtype: str = "torch.bfloat16"
    casts: bool | None = False

    def trained(self, process: WrittenProcess, **sampling: object) -> WrittenProcess:
        super().trained(process, **sampling)
        for line in process.lines:
            if line["kind"] == "trainer" and line["model"]["number"] == 1:
                line["model"]["casts"] = self.casts
        process.lines.insert(
            2, {"kind": "model", "at": process.lines[1]["at"], "class": "Llama", "dtypes": {self.dtype: 2}}
        )
        return process

    def sampled(self, process: WrittenProcess, rng: np.random.Generator, version: int) -> Rows:
        sent = 1.0 + 1e-3 * version
        held = sent if self.arrives == 1.0 and self.takes else 1.0 - self.offset
        if version:
            rows = {"sent": sent, "rounded": held if self.takes else sent, "held": held}
            process.weights([held] * 2, **{name: [value] * 2 for name, value in rows.items()})
        else:
            process.put("tensors", tensors=0, names=list(NAMES), shapes=[[4, 4]] * 2)
            process.weights([held] * 2)
        return super().sampled(process, rng, version)

    def samples_with(self, version: int) -> int:
        return round(version * self.arrives)


@pytest.fixture
def path_of(tmp_path: Path, json_report: Callable[..., Any]) -> Callable[..., Any]:
    """What is said of the inference path in such a world."""

    def judged(command: str = "compare", **world: Any) -> Any:
        folder = tmp_path / "r"
        if not folder.exists():
            ReadWorld(**world).write(folder)
        return json_report(command, str(folder))["layers"][1]

    return judged


def test_updates_that_are_rounded_away_are_named_where_the_mismatch_follows_them(path_of: Any) -> None:
    path = path_of(arrives=0.0)
    # The engine still has the weights of the reference, which its tokens show as well.
    assert (path["verdict"], path["causes"]) == ("mismatch", ["wrong-weights", "updates-rounded-away"])


@pytest.mark.parametrize(
    "other",
    [{"casts": True}, {"casts": None}, {"dtype": "torch.float32"}, {"offset": 0.05}],
    ids=["autocast", "unknown", "wide engine", "as far from the start"],
)
def test_they_are_a_fact_alone_where_the_trainer_or_the_growth_is_not_known(path_of: Any, other: Any) -> None:
    path = path_of(arrives=0.0, **other)
    assert path["verdict"] == "mismatch" and "updates-rounded-away" not in path["causes"]
    assert any("not named: updates-rounded-away" in line for line in path["evidence"])


def test_a_mismatch_that_does_not_grow_is_not_theirs(path_of: Any) -> None:
    # The weights stay behind, and the tokens are as far apart as before.
    path = path_of(arrives=0.0, drift=0.0, noise=0.12)
    assert path["verdict"] == "mismatch" and "updates-rounded-away" not in path["causes"]


def test_weights_that_are_not_as_sent_come_first_among_the_causes(path_of: Any) -> None:
    path = path_of(arrives=0.0, takes=False)
    assert (path["verdict"], path["causes"][0]) == ("mismatch", "weights-not-as-sent")
    assert "stayed as they were" in path["because"] and path["falsifier"] and path["next"]
    assert path_of("diagnose")["causes"][0] == "weights-not-as-sent"


def test_tokens_that_do_not_show_it_match_nothing(path_of: Any) -> None:
    path = path_of(arrives=0.0, takes=False, drift=0.0)
    assert path["verdict"] == "inconclusive" and "stayed as they were" in path["because"]


def test_weights_that_are_as_sent_change_no_judgement(path_of: Any) -> None:
    path = path_of()
    assert (path["verdict"], path["causes"]) == ("match", [])

"""What was read of an engine's weights decides why its tokens are apart, and is no cause of what is not apart."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_worlds import World
from written_recording import WrittenProcess, coded

from rlaudit.cli.app import run
from rlaudit.recording.shipped.rlaudit_recorder import ELEMENTS

NAMES = ("embed_tokens.weight", "norm.weight")
ALL = ELEMENTS * len(NAMES)


@dataclass(frozen=True)
class ReadWorld(World):
    """A world whose weights are read after each update. arrives: how much of each update the engine samples with.

    takes: whether its weights were seen to move. offset: how far they were from those that were sent at first.
    """

    arrives: float = 1.0
    takes: bool = True
    offset: float = 0.0
    dtype: str = "torch.bfloat16"
    casts: bool | None = False

    def write(self, folder: Path, ended: bool = True, **sampling: object) -> Path:
        super().write(folder, ended, **sampling)
        (file,) = folder.glob("*.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "trainer" and line["model"]["number"] == 1:
                line["model"]["casts"] = self.casts
        model = {"kind": "model", "at": lines[1]["at"], "class": "Llama", "dtypes": {self.dtype: 2}}
        lines.insert(2, model)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def _step(self, process: WrittenProcess, rng: np.random.Generator, version: int) -> Any:
        sent = 1.0 + 1e-3 * version
        held = sent if self.arrives == 1.0 and self.takes else 1.0 - self.offset
        rounded = held if self.takes else sent
        rows = {"values_sent": sent, "values_rounded": rounded, "values_held": held}
        weights = {name: coded([value] * ALL, "<f4") for name, value in rows.items()}
        if version:
            process.put("weights", load=process.loads, tensors=0, values=coded([held] * ALL, "<f4"), sent=0, **weights)
        else:
            process.put("tensors", tensors=0, names=list(NAMES), shapes=[[4, 4]] * 2)
            process.put("weights", load=None, tensors=0, values=coded([held] * ALL, "<f4"), sent=None)
        return super()._step(process, rng, version)

    def _sampled(self, rng: np.random.Generator, version: int, prompt: tuple[int, ...], length: int) -> Any:
        return super()._sampled(rng, round(version * self.arrives), prompt, length)


WORLD: dict[str, Any] = {"temperature": 1.0, "updates": 6, "prompts": 12, "drift": 0.06}


def path_of(folder: Path, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[dict[str, Any], Any]:
    run([*(command or ("compare",)), str(folder), "--output", "json"])
    report = json.loads(capsys.readouterr().out)
    return report["layers"][1], report


def test_updates_that_are_rounded_away_are_named_where_the_mismatch_follows_them(tmp_path, capsys) -> None:
    path, _ = path_of(ReadWorld(**WORLD, arrives=0.0).write(tmp_path / "r"), capsys)
    # The engine still has the weights of the reference, which its tokens show as well.
    assert (path["verdict"], path["causes"]) == ("mismatch", ["wrong-weights", "updates-rounded-away"])


@pytest.mark.parametrize(
    "other",
    [{"casts": True}, {"casts": None}, {"dtype": "torch.float32"}, {"offset": 0.05}],
    ids=["autocast", "unknown", "wide engine", "as far from the start"],
)
def test_they_are_a_fact_alone_where_the_trainer_or_the_growth_is_not_known(tmp_path, capsys, other) -> None:
    path, _ = path_of(ReadWorld(**WORLD, arrives=0.0, **other).write(tmp_path / "r"), capsys)
    assert path["verdict"] == "mismatch" and "updates-rounded-away" not in path["causes"]
    assert any("not named: updates-rounded-away" in line for line in path["evidence"])


def test_a_mismatch_that_does_not_grow_is_not_theirs(tmp_path, capsys) -> None:
    # The weights stay behind, and the tokens are as far apart as before.
    noisy = {**WORLD, "drift": 0.0, "noise": 0.12}
    path, _ = path_of(ReadWorld(**noisy, arrives=0.0).write(tmp_path / "r"), capsys)
    assert path["verdict"] == "mismatch" and "updates-rounded-away" not in path["causes"]


def test_weights_that_are_not_as_sent_come_first_among_the_causes(tmp_path, capsys) -> None:
    folder = ReadWorld(**WORLD, arrives=0.0, takes=False).write(tmp_path / "r")
    path, _ = path_of(folder, capsys)
    assert (path["verdict"], path["causes"][0]) == ("mismatch", "weights-not-as-sent")
    assert "stayed as they were" in path["because"] and path["falsifier"] and path["next"]
    both, report = path_of(folder, capsys, "diagnose")
    assert both["causes"][0] == "weights-not-as-sent"
    assert report["layers"][2]["verdict"] == "not tested"


def test_tokens_that_do_not_show_it_match_nothing(tmp_path, capsys) -> None:
    world = {**WORLD, "drift": 0.0}
    path, _ = path_of(ReadWorld(**world, arrives=0.0, takes=False).write(tmp_path / "r"), capsys)
    assert path["verdict"] == "inconclusive" and "stayed as they were" in path["because"]


def test_weights_that_are_as_sent_change_no_judgement(tmp_path, capsys) -> None:
    path, _ = path_of(ReadWorld(**WORLD).write(tmp_path / "r"), capsys)
    assert (path["verdict"], path["causes"]) == ("match", [])

"""What is said of weights that were read back: of updates that did what they announced, nothing."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from written_recording import WrittenProcess, coded

from rlaudit.recording.recording import open_recording
from rlaudit.recording.shipped.rlaudit_recorder import ELEMENTS
from rlaudit.recording.weight_readings import WeightReadings, weight_readings

NAMES = ("embed_tokens.weight", "norm.weight", "lm_head.weight")
NOT_COMPARABLE = np.full(ELEMENTS, np.nan, dtype=np.float32)


@dataclass
class Engine:
    """A worker whose model holds NAMES, with a trainer that sends them. Each value stands for a whole tensor."""

    process: WrittenProcess
    held: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NAMES, 1.0))
    step: float = 0.0

    def read(self, sent: dict[str, float] | None = None, **rows: dict[str, float]) -> None:
        """Note what is held, and of what was sent: values_rounded and values_held, where they differ from that."""
        now = {name: np.full(ELEMENTS, value, dtype=np.float32) for name, value in self.held.items()}
        record = {"sent": None if sent is None else 0}
        if sent is not None:
            held = rows.get("held", {name: self.held[name] for name in sent})
            for name, values in (("sent", sent), ("rounded", rows.get("rounded", sent)), ("held", held)):
                record[f"values_{name}"] = coded(
                    [np.full(ELEMENTS, values[one]) if one in values else NOT_COMPARABLE for one in NAMES], "<f4"
                )
        loads = self.process.loads or None
        self.process.put("weights", load=loads, tensors=0, values=coded(list(now.values()), "<f4"), **record)

    def update(self, stays: tuple[str, ...] = (), arrives: bool = True, changes: bool = True) -> None:
        """Send every tensor with a new value. stays: those that the engine does not take."""
        self.step += changes
        sent = dict.fromkeys(NAMES, 1.0 + self.step)
        self.process.load(NAMES)
        self.held |= {name: value for name, value in sent.items() if arrives and name not in stays}
        self.read(sent)

    def readings(self, is_tied: bool = False) -> WeightReadings:
        (process,) = open_recording(self.process.write()).processes
        found = weight_readings(process, [process], is_tied)
        assert found is not None
        return found


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    one = Engine(WrittenProcess(tmp_path))
    one.process.put("tensors", tensors=0, names=list(NAMES), dtypes=["torch.float32"] * 3, shapes=[[8, 8]] * 3)
    one.read()
    return one


def faults(engine: Engine, is_tied: bool = False) -> list[str]:
    return list(engine.readings(is_tied).faults())


def test_updates_that_arrive_are_no_fault(engine: Engine) -> None:
    for _ in range(3):
        engine.update()
    found = engine.readings(is_tied=True)
    assert list(found.faults()) == []
    assert found.compared == set(NAMES)
    assert [(one.changed, one.rounded_away) for one in found.updates] == [(0, 0), *[(3 * ELEMENTS, 0)] * 2]


def test_the_same_weights_sent_twice_are_no_fault(engine: Engine) -> None:
    engine.update()
    engine.update(changes=False)
    found = engine.readings()
    assert list(found.faults()) == [] and [one.changed for one in found.updates] == [0, 0]
    assert "1 sent what the update before them had sent" in next(found.sentences())


def test_an_update_that_moves_nothing_is_one(engine: Engine) -> None:
    engine.update()
    engine.update(arrives=False)
    assert faults(engine) == ["stayed as they were in 1 of 2 updates that sent other values"]


def test_the_first_update_is_held_against_the_weights_before_it(engine: Engine) -> None:
    engine.update(arrives=False)
    assert faults(engine) == ["stayed as they were in 1 of 1 updates that sent other values"]


def test_a_tensor_that_stays_is_named(engine: Engine) -> None:
    engine.update()
    engine.update(stays=("norm.weight",))
    (fault,) = faults(engine)
    assert "norm.weight, of 3 tensors" in fault and "lm_head" not in fault


def test_a_tied_head_that_stays_is_named(engine: Engine) -> None:
    engine.update(stays=("lm_head.weight",))
    assert [fault for fault in faults(engine, is_tied=True) if "tied" in fault]
    assert not [fault for fault in faults(engine) if "tied" in fault]


def test_a_change_that_nothing_announced_is_one(engine: Engine) -> None:
    engine.update()
    engine.held["norm.weight"] = 9.0
    engine.read()
    assert faults(engine) == ["changed once without a call that announced it, first seen in norm.weight"]


def test_a_scale_that_the_engine_finds_by_itself_is_none(tmp_path: Path) -> None:
    engine = Engine(WrittenProcess(tmp_path), {"layers.0.attn.k_scale": 1.0})
    engine.process.put("tensors", tensors=0, names=list(engine.held), dtypes=["torch.float32"], shapes=[[1]])
    engine.read()
    engine.held["layers.0.attn.k_scale"] = 2.0
    engine.read()
    assert faults(engine) == []


@pytest.mark.parametrize("what", ["vllm.v1.engine.core:EngineCore.collective_rpc", "worker.update_weights"])
def test_a_change_around_a_call_is_announced(engine: Engine, what: str) -> None:
    engine.update()
    engine.process.call(what, method="receive_weights")
    engine.held["norm.weight"] = 9.0
    engine.read()
    assert faults(engine) == []


def test_changes_that_the_engines_dtype_rounds_away_are_counted_and_no_fault(engine: Engine) -> None:
    engine.update()
    tiny = {name: engine.held[name] + 1e-4 for name in NAMES}
    engine.process.load(NAMES)
    engine.read(tiny, rounded=dict(engine.held))
    found = engine.readings()
    assert list(found.faults()) == []
    assert [(one.changed, one.rounded_away) for one in found.updates] == [(0, 0), (3 * ELEMENTS, 3 * ELEMENTS)]
    assert "of 24 changed elements 100.0 % changed by too little" in next(found.sentences())


def test_a_tensor_that_takes_a_third_value_is_counted_and_no_fault(engine: Engine) -> None:
    engine.update()
    engine.step += 1
    engine.process.load(NAMES)
    engine.held = dict.fromkeys(NAMES, 1.0 + engine.step) | {"norm.weight": -5.0}
    engine.read(dict.fromkeys(NAMES, 1.0 + engine.step))
    found = engine.readings()
    assert list(found.faults()) == [] and found.otherwise == {"norm.weight"}


def test_tensors_without_a_counterpart_are_counted(engine: Engine) -> None:
    sent = dict.fromkeys(NAMES, 2.0)
    engine.process.load(NAMES)
    engine.held = {**engine.held, "norm.weight": 2.0}
    engine.read(sent, rounded={"norm.weight": 2.0}, held={"norm.weight": 2.0})
    found = engine.readings()
    assert list(found.faults()) == [] and found.incomparable == {"embed_tokens.weight", "lm_head.weight"}


def test_a_reading_that_is_damaged_says_nothing(engine: Engine) -> None:
    engine.update()
    engine.update(arrives=False)
    engine.process.lines[-1]["values_held"] = coded([1.0], "<f4")
    assert faults(engine) == []


@pytest.mark.parametrize("rpc", [False, True])
def test_weights_that_sleep_discards_and_no_update_brings_back_are_one(engine: Engine, rpc: bool) -> None:
    engine.update()
    for name in ("sleep", "wake_up"):
        arguments = {"method": name} if rpc else {}
        engine.process.call("vllm.v1.engine.core:EngineCore.collective_rpc" if rpc else f"worker.{name}", **arguments)
    engine.held = dict.fromkeys(NAMES, 0.0)
    engine.read()
    (fault,) = faults(engine)
    assert "after sleep" in fault and "in 1 of 3 readings" in fault


def test_an_update_after_sleep_brings_them_back(engine: Engine) -> None:
    engine.update()
    engine.process.call("worker.sleep", level=2)
    engine.process.call("worker.wake_up")
    engine.update()
    assert faults(engine) == []


def test_one_that_was_never_held_as_it_was_sent_shows_nothing(engine: Engine) -> None:
    engine.held["norm.weight"] = -5.0
    engine.process.call("vllm.v1.engine.core:EngineCore.collective_rpc", method="transform")
    engine.read()
    for number in range(3):
        engine.process.load(NAMES)
        engine.held |= {name: 3.0 + number for name in NAMES if name != "norm.weight"}
        engine.read(dict.fromkeys(NAMES, 3.0 + number), held=engine.held)
    found = engine.readings()
    assert list(found.faults()) == [] and found.known == {"embed_tokens.weight", "lm_head.weight"}


def test_what_is_not_written_is_as_what_stands_before_it(engine: Engine) -> None:
    engine.update()
    engine.update(stays=("norm.weight",))
    for line in engine.process.lines:
        for name, before in (("values_held", "values_rounded"), ("values_rounded", "values_sent")):
            if line.get(name) is not None and line[name] == line[before]:
                line[name] = None
    assert "norm.weight" in faults(engine)[0]
    assert [one.changed for one in engine.readings().updates] == [0, 3 * ELEMENTS]


def test_how_far_what_is_held_is_from_what_was_sent_is_known_by_update(engine: Engine) -> None:
    engine.update()
    for number in (1, 2):
        engine.process.load(NAMES)
        engine.read({name: engine.held[name] + 1e-3 * number for name in NAMES}, rounded=dict(engine.held))
    first, *others = engine.readings().updates
    assert first.apart == 0.0
    assert [one.apart for one in others] == pytest.approx([1e-3 / 2, 2e-3 / 2], rel=2e-3)
    assert [one.rounded_away for one in others] == [3 * ELEMENTS] * 2


def test_what_was_sent_in_a_form_that_is_not_read_shows_nothing(engine: Engine) -> None:
    for _ in range(2):
        engine.process.load(NAMES)
        engine.read({}, held=engine.held)
    found = engine.readings()
    assert found.incomparable == set(NAMES) and list(found.faults()) == []

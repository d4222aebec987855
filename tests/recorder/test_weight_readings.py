"""What is said of weights that were read back: of updates that did what they announced, nothing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from written_recording import WrittenProcess, coded

from rlaudit.recording.shipped.rlaudit_recorder import ELEMENTS
from rlaudit.recording.weight_readings import WeightReadings, weight_readings

TABLE = yaml.safe_load(Path(__file__).with_name("weight_readings.yaml").read_text())
NAMES = ("embed_tokens.weight", "norm.weight", "lm_head.weight")
NOT_COMPARABLE = float("nan")
Values = dict[str, float]


@dataclass
class Engine:
    """A worker whose model holds NAMES, with a trainer that sends them. Each value stands for a whole tensor."""

    process: WrittenProcess
    held: Values = field(default_factory=lambda: dict.fromkeys(NAMES, 1.0))
    sent: float = 1.0

    def __post_init__(self) -> None:
        names = list(self.held)
        self.process.put("tensors", tensors=0, names=names, dtypes=["torch.float32"] * 3, shapes=[[8, 8]] * len(names))
        self.read()

    def read(self, sent: Values | None = None, **rows: Values) -> None:
        """Note what is held, and of what was sent: rounded and held, where they differ from that."""
        if sent is None:
            self.process.weights(list(self.held.values()))
            return
        known = {"sent": sent, "rounded": sent, "held": {name: self.held[name] for name in sent}, **rows}
        each = {name: [values.get(one, NOT_COMPARABLE) for one in NAMES] for name, values in known.items()}
        self.process.weights(list(self.held.values()), **each)

    def update(self, by: float = 1.0, stays: tuple[str, ...] = (), **otherwise: float) -> None:
        """Send every tensor with a new value. stays: those that the engine does not take. otherwise: what it makes."""
        self.sent += by
        sent = dict.fromkeys(NAMES, self.sent)
        self.process.load(NAMES)
        self.held |= {name: value for name, value in sent.items() if name not in stays} | otherwise
        self.read(sent)

    def rounds_away(self, by: float = 1e-4) -> None:
        """Send what the engine's dtype cannot tell from what it holds."""
        self.process.load(NAMES)
        self.read({name: self.held[name] + by for name in NAMES}, rounded=dict(self.held))

    def changes(self, name: str, value: float) -> None:
        """Hold something else, without an update."""
        self.held[name] = value

    def discards(self) -> None:
        self.held = dict.fromkeys(NAMES, 0.0)

    def call(self, what: str, **arguments: Any) -> None:
        self.process.call(what, **arguments)

    def play(self, course: list[Any]) -> "Engine":
        """Do what the table says."""
        for word in course:
            name, given = (word, {}) if isinstance(word, str) else next(iter(word.items()))
            getattr(self, name)(**given)
        return self

    def readings(self, is_tied: bool = False) -> WeightReadings:
        (process,) = self.process.opened().processes
        found = weight_readings(process, [process], is_tied)
        assert found is not None
        return found


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(WrittenProcess(tmp_path))


@pytest.mark.parametrize("sentence", TABLE)
def test_readings_of_weights_say_what_the_table_says(sentence: str, engine: Engine) -> None:
    case = TABLE[sentence]
    found = engine.play(case["course"]).readings(case.get("is_tied", False))
    faults = list(found.faults())
    assert len(faults) == len(case["faults"])
    assert [
        parts for parts, fault in zip(case["faults"], faults, strict=True) if not all(one in fault for one in parts)
    ] == []
    changes = [[one.changed // ELEMENTS, one.rounded_away // ELEMENTS] for one in found.updates]
    assert changes == case.get("changes", changes)
    assert case.get("says", "") in next(found.sentences(), "")
    for name in ("otherwise", "incomparable", "compared", "known"):
        assert set(case.get(name, getattr(found, name))) == getattr(found, name)


def test_a_tied_head_that_stays_is_named_as_one_where_it_is_tied(engine: Engine) -> None:
    engine.update(stays=("lm_head.weight",))
    for is_tied in (True, False):
        assert ("tied" in "\n".join(engine.readings(is_tied).faults())) is is_tied


def test_a_scale_that_the_engine_finds_by_itself_is_no_change(tmp_path: Path) -> None:
    engine = Engine(WrittenProcess(tmp_path), {"layers.0.attn.k_scale": 1.0})
    engine.changes("layers.0.attn.k_scale", 2.0)
    engine.read()
    assert list(engine.readings().faults()) == []


def test_tensors_without_a_counterpart_are_counted(engine: Engine) -> None:
    engine.process.load(NAMES)
    engine.changes("norm.weight", 2.0)
    engine.read(dict.fromkeys(NAMES, 2.0), rounded={"norm.weight": 2.0}, held={"norm.weight": 2.0})
    found = engine.readings()
    assert list(found.faults()) == [] and found.incomparable == {"embed_tokens.weight", "lm_head.weight"}


def test_what_was_sent_in_a_form_that_is_not_read_shows_nothing(engine: Engine) -> None:
    for _ in range(2):
        engine.process.load(NAMES)
        engine.read({}, held=engine.held)
    found = engine.readings()
    assert found.incomparable == set(NAMES) and list(found.faults()) == []


def test_a_reading_that_is_damaged_says_nothing(engine: Engine) -> None:
    engine.play(["update", {"update": {"stays": NAMES}}])
    engine.process.lines[-1]["values_held"] = coded([1.0], "<f4")
    assert list(engine.readings().faults()) == []


def test_what_is_not_written_is_as_what_stands_before_it(engine: Engine) -> None:
    engine.play(["update", {"update": {"stays": ("norm.weight",)}}])
    for line in engine.process.lines:
        for name, before in (("values_held", "values_rounded"), ("values_rounded", "values_sent")):
            if line.get(name) is not None and line[name] == line[before]:
                line[name] = None
    found = engine.readings()
    assert "norm.weight" in next(iter(found.faults()))
    assert [one.changed for one in found.updates] == [0, 3 * ELEMENTS]


def test_how_far_what_is_held_is_from_what_was_sent_is_known_by_update(engine: Engine) -> None:
    engine.play(["update", {"rounds_away": {"by": 1e-3}}, {"rounds_away": {"by": 2e-3}}])
    first, *others = engine.readings().updates
    assert first.apart == 0.0
    assert [one.apart for one in others] == pytest.approx([1e-3 / 2, 2e-3 / 2], rel=2e-3)
    assert [one.rounded_away for one in others] == [3 * ELEMENTS] * 2

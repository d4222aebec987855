"""An advisory's file is refused by the name of what cannot stand in it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from simulated_audit import simulated_audit

from rlaudit.rules import advisories
from rlaudit.rules.advisories.advisory import read_advisory
from rlaudit.rules.advisories.conditions import NAMED, condition_of
from rlaudit.unknown import Unknown

RIGHT = Path(advisories.__file__).with_name("rounded-processed-logprobs.yaml")
FILES = [
    next(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    for path in sorted(Path(advisories.__file__).parent.glob("*.yaml"))
]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"way_out": "Wait."}, "it has no key way_out; did you mean way out?"),
        ({"confirm": ...}, "it has no confirm"),
        ({"layer": "inference"}, "'inference' is not a valid Layer"),
        ({"severity": "fatal"}, "'fatal' is not a valid Severity"),
        ({"window": {"from": []}}, "it has no key from; "),
        ({"window": {"first": ["0.26.0", "vllm/a.py:1"]}}, "first is not a release, a place in its sources and"),
        ({"conditions": ["second-runer"]}, "no condition is called second-runer; did you mean second-runner?"),
        ({"conditions": [{"if": "$engine.seed == 0"}]}, "a condition has `says` and `if`, and not if"),
        ({"conditions": [{"says": "so", "if": "$engine.seed was 0"}]}, "is no condition"),
        ({"conditions": [{"says": "so", "if": "$engin.seed == 0"}]}, "refers to $engin.seed, which is nothing"),
        ({"conditions": [{"says": "so", "if": "$model.mixtur"}]}, "did you mean mixture?"),
        ({"unless": [{"says": "so", "if": "$trainer.pause_mode == kept"}]}, "is none of none, keep, wait, abort"),
    ],
)
def test_a_fault_is_named_with_the_file(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    written = {**next(yaml.safe_load_all(RIGHT.read_text(encoding="utf-8"))), **changed}
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in written.items() if value is not ...}, sort_keys=False))
    with pytest.raises(ValueError, match=r"^wrong\.yaml: ") as raised:
        read_advisory(path)
    assert message in str(raised.value)


def test_every_name_of_a_condition_is_used() -> None:
    used = {one for file in FILES for one in (*file["conditions"], *file.get("unless", ())) if isinstance(one, str)}
    assert used == {*NAMED}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("$engine.enable_prefix_caching == true and $engine.enable_sleep_mode == true", False),
        ("$engine.enable_prefix_caching == true and $model.mixture", None),
        ("$engine.enable_sleep_mode == true and $model.mixture", False),
        ("$engine.enable_prefix_caching == true or $model.mixture", True),
        ("not $model.mixture", None),
        ("$engine.tensor_parallel_size > 2", False),
        ("$engine.tensor_parallel_size > 1", True),
        ("$sampling.seed is written", False),
        ("$trainer.pause_mode == keep", False),
        ("framework == verl and vllm >= 0.18.0", True),
        ("framework == verl and vllm >= 0.19.0", False),
    ],
)
def test_a_condition_is_open_unless_one_part_decides(text: str, held: bool | None) -> None:
    side = simulated_audit({"to": "0.18.1", "framework": "verl", "engine": {"tensor_parallel_size": 2}}).after
    found = condition_of({"says": "so", "if": text}).holds(side)
    assert (None if isinstance(found, Unknown) else found) is held

"""An advisory's file is refused by the name of what cannot stand in it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from simulated_audit import simulated_audit

from rlaudit import advisories
from rlaudit.advisories.advisory import read_advisory
from rlaudit.advisories.conditions import FORMS, NAMED, condition_of
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
        ({"conditions": [{"setting": "seed", "is": 0}]}, "a condition with setting, is has no sentence in `says`"),
        ({"conditions": [{"says": "so", "setting": "seed", "was": 0}]}, "no condition has the keys setting, was; "),
        (
            {"unless": [{"says": "so", "trainer": "pause_mode", "is": "kept"}]},
            "is none of none, keep, wait, abort",
        ),
        ({"unless": [{"says": "so", "any": ["cpus"]}]}, "no condition is called cpus; did you mean cpu?"),
    ],
)
def test_a_fault_is_named_with_the_file(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    written = {**next(yaml.safe_load_all(RIGHT.read_text(encoding="utf-8"))), **changed}
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in written.items() if value is not ...}, sort_keys=False))
    with pytest.raises(ValueError, match=r"^wrong\.yaml: ") as raised:
        read_advisory(path)
    assert message in str(raised.value)


def test_every_name_and_form_of_a_condition_is_used() -> None:
    used = {name for file in FILES for one in (*file["conditions"], *file.get("unless", ())) for name in _words(one)}
    assert used >= {*NAMED, *(key for keys in FORMS for key in keys)}


def _words(written: Any) -> set[str]:
    if isinstance(written, dict):
        return {*written} | {word for value in written.values() for word in _words(value)}
    return {word for one in written for word in _words(one)} if isinstance(written, list) else {str(written)}


@pytest.mark.parametrize(
    ("form", "held"),
    [
        ({"all": ["prefix-caching", "sleeps"]}, False),
        ({"all": ["prefix-caching", "mixture"]}, None),
        ({"all": ["sleeps", "mixture"]}, False),
        ({"any": ["prefix-caching", "mixture"]}, True),
        ({"any": ["sleeps", "mixture"]}, None),
        ({"not": "sleeps"}, True),
        ({"not": "mixture"}, None),
        ({"setting": "tensor_parallel_size", "above": 2}, False),
        ({"setting": "tensor_parallel_size", "above": 1}, True),
        ({"framework": "verl", "since": "0.18.0"}, True),
        ({"framework": "verl", "since": "0.19.0"}, False),
    ],
)
def test_a_condition_is_open_unless_one_part_decides(form: dict[str, Any], held: bool | None) -> None:
    side = simulated_audit({"to": "0.18.1", "framework": "verl", "engine": {"tensor_parallel_size": 2}}).after
    found = condition_of({"says": "so", **form}).holds(side)
    assert (None if isinstance(found, Unknown) else found) is held

import pytest
from packaging.version import Version

from rlaudit.cli.list_what import Listed, list_
from rlaudit.layers import Layer
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.machine import MACHINES
from rlaudit.vllm.moved import Change, Moved, VllmPart, moved, moved_values

V0, V1 = Version("0.8.5"), Version("0.18.1")


def by_name(changes: tuple[Moved, ...], part: VllmPart, change: Change = Change.VALUE) -> dict[str, Moved]:
    return {one.name: one for one in changes if one.part is part and one.change is change}


def test_semantic_moves_come_first() -> None:
    layers = [change.layer for change in moved_values(V0, V1, MACHINES["h100"], v0=True)]
    assert layers == sorted(layers, key=list(Layer).index)


def test_a_decision_of_vllm_is_not_told_twice() -> None:
    changes = moved(V0, V1, MACHINES["h100"])
    assert "seed" in by_name(changes, VllmPart.RESOLVED)
    assert "seed" not in by_name(changes, VllmPart.ARGUMENT)


def test_an_empty_default_that_became_an_object_with_defaults_has_not_moved() -> None:
    changes = by_name(moved(V0, V1, MACHINES["h100"]), VllmPart.ARGUMENT)
    assert not {"compilation_config", "hf_overrides", "override_generation_config"} & set(changes)


def test_a_release_beside_itself_moves_nothing() -> None:
    assert moved(V1, V1, MACHINES["h100"]) == ()


def test_what_is_unknown_on_both_sides_is_not_said_to_move() -> None:
    for change in moved_values(V0, V1, MACHINES["h100"]):
        assert not (isinstance(change.before, Unknown) and isinstance(change.after, Unknown))


def test_the_machine_decides_what_moves() -> None:
    on_gpu = {change.name for change in moved_values(V0, V1, MACHINES["h100"])}
    on_cpu = {change.name for change in moved_values(V0, V1, MACHINES["cpu"])}
    assert "async_scheduling" in on_gpu
    assert "enable_prefix_caching" in on_cpu - on_gpu


def test_every_release_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    list_(Listed.VERSIONS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(known_versions())
    assert lines[0].startswith("0.8.5 ")

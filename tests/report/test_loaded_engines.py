"""What the engines loaded, in every format: each difference with its arms, the rest once."""

from typing import Any

import pytest
from documents import ablation, records

from rlaudit.report.rendering.outlines import ablate
from rlaudit.report.rendering.outlines.ablate import by_value, loaded_engines

FEATURES: dict[str, str | None] = {
    "model_runner": "V1 GPUModelRunner",
    "attention_backend": "FLASH_ATTN",
    "attention_version": "FA3",
    "gpu": "NVIDIA H100",
    "moe_backend": None,
}
RAN = {
    "batches": 40,
    "flashinfer_batches": 0,
    "cascade": {"considered": 40, "used": 0, "longest_prefix": 96, "most_requests": 24},
    "graphs": {"NONE": 3, "FULL": 37},
}
SAME = {"identical": True, "requests": 16, "tokens": 8, "differs_at": None, "by": 0.0}


@pytest.fixture
def document() -> dict[str, Any]:
    """The example, as if its reference had attended with another backend and the others in a batch-invariant way."""
    found = ablation()
    for arm in found["arms"]:
        reference = arm["role"] == "reference"
        changed = {"attention_backend": "XFORMERS", "attention_version": "xformers 0.0.29"} if reference else {}
        features, because = {**FEATURES, **changed}, {"moe_backend": "the model has none"}
        arm["loaded"] = {"features": features, "because": because, "failed": {}, "ran": RAN}
        arm["batch_probe"] = {**SAME, "identical": not reference}
    return found


def test_each_label_of_what_workers_report_has_a_kind() -> None:
    kinds = [label for labels in ablate.KINDS.values() for label in labels]
    assert sorted(kinds) == sorted([*ablate.LABELS.values(), *ablate.RAN])


def test_differences_name_their_arms_and_the_rest_is_said_once(document: dict[str, Any]) -> None:
    block = loaded_engines(records(document))[0]
    differing = dict(block.differing)
    assert list(differing) == [
        "attention",
        "attention kernels",
        "logprobs change with the batch",
        "prompt logprobs",
    ]
    assert differing["attention"] == [("XFORMERS", "reference"), ("FLASH_ATTN", "all others")]
    assert dict(block.shared)["CUDA graph modes replayed"] == "FULL and NONE"
    assert dict(block.shared)["cascade attention"] == "not used"
    assert "experts" not in dict(block.shared)


def test_an_arm_that_told_nothing_of_a_feature_is_not_taken_for_the_others(document: dict[str, Any]) -> None:
    del document["arms"][0]["loaded"]["features"]["gpu"]
    told = dict(dict(loaded_engines(records(document))[0].differing)["GPU"])
    assert told["not seen"] == document["arms"][0]["name"]


def test_what_an_engine_has_not_got_is_told_from_what_was_not_seen(document: dict[str, Any]) -> None:
    arm = document["arms"][0]
    arm["loaded"]["ran"] = {**RAN, "graphs": None}
    assert ("not in this build", arm["name"]) in dict(loaded_engines(records(document))[0].differing)[
        "CUDA graph modes replayed"
    ]
    del arm["loaded"]["ran"]
    assert ("not seen", arm["name"]) in dict(loaded_engines(records(document))[0].differing)[
        "CUDA graph modes replayed"
    ]


def test_few_arms_with_a_value_are_named_and_many_are_the_others() -> None:
    assert by_value({"one": "b", "two": "a"}) == [("b", "one"), ("a", "two")]
    assert by_value({str(number): "a" for number in range(9)} | {"x": "b"}) == [("a", "all others"), ("b", "x")]

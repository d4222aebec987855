"""What stands in a cell: what the worker runs, beside what the release's sources say."""

import re
from types import SimpleNamespace
from typing import Any

from releases.release_cells import cells_of

from rlaudit.report.parts.releases import Cell
from rlaudit.vllm.machine import Machine


def cells(resolved: dict[str, Any], features: dict[str, Any]) -> dict[str, Cell]:
    arm = SimpleNamespace(
        status="ok", role="parity", block="b", name="parity", engine_args={}, variables={}, observed=None,
        measurements={}, cached_tokens=None, resolved=resolved, loaded={"features": features}, batch_probe=None,
        prompt_probe=None,
    )  # fmt: skip
    report: Any = {"arms": [arm]}
    _, found = cells_of(report, "0.24.0", Machine())
    return found


def settings(resolved: dict[str, Any], features: dict[str, Any]) -> dict[str, Any]:
    return {name: (cell.word, cell.claimed) for name, cell in cells(resolved, features).items()}


def test_what_the_engine_chose_stands_where_the_configuration_leaves_it_open() -> None:
    found = settings({"attention_backend": None}, {"attention_backend": "FLASHINFER"})
    assert found == {"attention_backend": ("FLASHINFER", "FLASH_ATTN")}


def test_a_setting_that_nothing_chose_is_none_and_has_no_claim() -> None:
    assert settings({"async_scheduling": None}, {}) == {"async_scheduling": ("none", None)}


def test_a_backend_of_v1_is_the_one_that_v0_has() -> None:
    assert settings({"attention_backend": None}, {"attention_backend": "FLASH_ATTN_VLLM_V1"}) == {
        "attention_backend": ("FLASH_ATTN", "FLASH_ATTN")
    }


def test_a_claim_has_its_reason_with_the_line_of_the_release() -> None:
    found = cells({"enable_prefix_caching": True, "device": "cuda"}, {"torch_cuda": "13.0"})
    assert re.search(r"\(vllm/\S+\.py:\d+\)$", found["enable_prefix_caching"].why or "")
    assert found["torch_cuda"].why is None

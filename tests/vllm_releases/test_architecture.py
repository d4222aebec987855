"""What kind of model runs, from its config.json or the name that its makers gave it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulated_audit import simulated_audit

from rlaudit.unknown import Unknown
from rlaudit.vllm.architecture import Architecture, architecture


def told(model: str) -> Architecture | Unknown:
    return architecture(simulated_audit({"to": "0.18.1", "model": model}).after.resolution)


def known(model: str) -> Architecture:
    found = told(model)
    assert isinstance(found, Architecture), found
    return found


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("deepseek-ai/DeepSeek-V3", "mixture latent_attention biased_router"),
        ("deepseek-ai/DeepSeek-R1-0528", "mixture latent_attention biased_router"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", ""),
        ("moonshotai/Moonlight-16B-A3B-Instruct", "mixture latent_attention biased_router"),
        ("zai-org/GLM-4.5-Air", "mixture biased_router"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "mixture"),
        ("Qwen/Qwen3-8B", ""),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "images"),
        ("Qwen/Qwen3.5-35B-A3B", "mixture several_caches images"),
        ("Qwen/Qwen3.5-4B", "several_caches images"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "mixture several_caches"),
        ("meta-llama/Llama-3.1-8B-Instruct", ""),
        ("/models/Mixtral-8x7B-v0.1", "mixture"),
        ("google/gemma-3-27b-it", "images"),
        ("openai/gpt-oss-20b", "mixture quantized"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "mixture mamba2 several_caches biased_router"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "mamba2 several_caches"),
    ],
)  # fmt: skip
def test_a_published_name_tells_what_the_model_is_made_of(model: str, kind: str) -> None:
    traits = ("mixture", "latent_attention", "mamba2", "several_caches", "biased_router", "images", "quantized")
    assert [name for name in traits if getattr(known(model), name)] == [name for name in traits if name in kind.split()]


def test_a_folder_that_is_not_told_still_has_a_name() -> None:
    audit = simulated_audit({"to": "0.18.1", "model": "Qwen/Qwen3-8B"})
    view, said = audit.after.resolution, audit.config.model
    assert said is not None
    for written, kind in (("$HOME/models/Qwen3-30B-A3B", True), ("$MODEL", None)):
        untold = replace(said, value=Unknown("$HOME is set nowhere in this file"), written=written)
        found = architecture(replace(view, config=replace(view.config, model=untold)))
        assert (found.mixture if isinstance(found, Architecture) else None) is kind


def test_another_name_is_not_guessed() -> None:
    found = told("acme/policy-of-tuesday")
    assert isinstance(found, Unknown)
    assert "acme/policy-of-tuesday" in found.reason


def test_the_config_of_the_checkpoint_counts_and_not_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "x", "text_config": {"num_local_experts": 8}}))
    assert known(str(folder)).mixture


def runner(model: str, release: str = "0.22.0") -> tuple[Any, str]:
    after = simulated_audit({"to": release, "model": model}).after
    return after.value("model_runner"), after.engine("model_runner").note


@pytest.mark.parametrize(
    ("model", "release", "runs"),
    [
        ("Qwen/Qwen3-8B", "0.22.0", "V2"),
        ("Qwen/Qwen3-4B-Instruct-2507", "0.22.0", "V2"),
        ("/models/Qwen3-0.6B-Base", "0.22.0", "V2"),
        ("Qwen/Qwen3-30B-A3B", "0.25.0", "V1"),
        ("meta-llama/Llama-3.1-8B-Instruct", "0.22.0", "V1"),
        ("meta-llama/Llama-3.1-8B-Instruct", "0.23.0", "V2"),
        ("Qwen/Qwen2.5-7B", "0.24.0", "V1"),
    ],
)
def test_the_whole_name_of_a_known_model_decides_its_runner_and_the_report_says_so(model, release, runs):
    value, note = runner(model, release)
    assert value == runs
    assert "inferred from the model's name" in note


@pytest.mark.parametrize(
    "model",
    ["Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B-AWQ", "acme/Qwen3-8B", "acme/qwen3-8b-reward", "Qwen/Qwen3-VL-8B-Instruct",
     "Qwen/Qwen3-Embedding-8B", "Qwen/Qwen3Guard-Gen-8B", "/models/Qwen3-8B-step-400", "Qwen3-8B-EAGLE3"],
)  # fmt: skip
def test_a_name_that_only_resembles_a_known_one_decides_nothing(model: str) -> None:
    assert isinstance(runner(model)[0], Unknown)


def test_a_config_in_the_hubs_cache_decides_and_a_name_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--Qwen--Qwen3-8B"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    config = {"architectures": ["Qwen3ForCausalLM"], "quantization_config": {"quant_method": "fp8"}}
    (repository / "snapshots" / "abc" / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert runner("Qwen/Qwen3-8B")[0] == "V1"
    for way in ("../snapshots/abc", str(repository / "snapshots" / "abc")):
        after = simulated_audit({"to": "0.22.0", "model": "Qwen/Qwen3-8B", "engine": {"revision": way}}).after
        assert after.resolution.checkpoint is None

"""Starts an engine on a tiny random model and says what works in it.

Four engine starts at most: as the release is by default, with prefix caching where that is off by default,
with everything a parity recipe asks for, and with batch invariance where the release has it. What counts is
what the loaded engine resolved, not what was asked for.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.environment_spec import Environment
from rlaudit.engines.launch import Outcome, launch

_SCRIPTS = Path(__file__).with_name("scripts")
_EXTENSION = Path(__file__).with_name("extension")
_SECONDS = 600.0
# Sixteen tokens fill one block of the KV cache: the second round can reuse them.
_PROMPT = list(range(10, 58))
_ENGINE_ARGS = {
    "skip_tokenizer_init": True,
    "dtype": "float32",
    "max_model_len": 256,
    "max_num_seqs": 8,
    "block_size": 16,
    "enforce_eager": True,
    "gpu_memory_utilization": 0.2,
}


@dataclass(frozen=True)
class Symptom:
    """One thing looked at. `works` is None where it was not tried or does not exist in this release."""

    name: str
    works: bool | None
    says: str


@dataclass(frozen=True)
class Diagnosis:
    """What was found in one environment."""

    environment: Environment
    symptoms: tuple[Symptom, ...]

    @property
    def healthy(self) -> bool:
        """Whether the engine starts and generates; a missing feature is no illness."""
        needed = {"starts", "generates"}
        return needed <= {symptom.name for symptom in self.symptoms if symptom.works}


def examine(environment: Environment, report: Callable[[str], None]) -> Diagnosis:
    """Start the engine and look. A failure is a symptom with the engine's own words, never an exception."""
    folder = Path(tempfile.mkdtemp(prefix="rlaudit-doctor-"))
    try:
        return Diagnosis(environment, tuple(_examine(environment, folder, report)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _examine(environment: Environment, folder: Path, report: Callable[[str], None]) -> list[Symptom]:
    name = environment.spec.name
    tiny = {"output": str(folder / "model"), "seed": 0}
    made = _run(environment, folder / "tiny", "tiny_model.py", tiny)
    looked = _run(environment, folder / "features", "features.py", {})
    if made.failure or looked.failure:
        failure = made.failure or looked.failure
        return [Symptom("imports", False, failure.message if failure else "")]
    features: Mapping[str, Any] = looked.result["features"]
    symptoms = [Symptom("imports", True, _packages(environment))]

    report(f"{name}: starting the engine as it is by default")
    default = _start(environment, folder / "default", {})
    symptoms += _start_and_generation(default)
    if default.failure:
        return symptoms
    cached = default
    if not default.result["resolved"]["enable_prefix_caching"]:
        report(f"{name}: starting it with prefix caching")
        cached = _start(environment, folder / "cached", {"enable_prefix_caching": True})
    symptoms.append(_prefix_caching(default, cached, folder))
    asked: dict[str, Any] = {}
    if features["logprobs_modes"]:
        asked["logprobs_mode"] = "processed_logprobs"
    if features["async_scheduling"]:
        asked["async_scheduling"] = True
    report(f"{name}: starting it with {', '.join([*asked, 'an fp32 head'])}")
    parity = _start(environment, folder / "parity", asked, fp32_head=True)
    symptoms += [
        _logprobs_mode(default, parity, features),
        _async_scheduling(parity, features),
        _fp32_head(parity),
    ]
    if features["batch_invariance"]:
        report(f"{name}: starting it with VLLM_BATCH_INVARIANT=1")
        variables = {"VLLM_BATCH_INVARIANT": "1"}
        backend: dict[str, Any] = {}
        if environment.spec.build == "cuda" and features["attention_backend"]:
            # Batch invariance refuses a backend that the engine would choose by itself.
            backend = {"attention_backend": "FLASH_ATTN"}
        elif environment.spec.build == "cuda":
            variables["VLLM_ATTENTION_BACKEND"] = "FLASH_ATTN"
        invariant = _start(environment, folder / "invariant", backend, variables)
        symptoms.append(_outcome("batch invariance", invariant, "starts"))
    else:
        symptoms.append(Symptom("batch invariance", None, "not in this release"))
    return symptoms


def _start(
    environment: Environment,
    cell: Path,
    engine_args: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
    fp32_head: bool = False,
) -> Outcome:
    requests = [{"prompt": 0, "sample": 0, "round": turn, "seed": turn} for turn in range(2)]
    job = {
        "model": str(cell.parent / "model"),
        "engine_args": {**_ENGINE_ARGS, **engine_args},
        "optional_engine_args": {},
        "sampling": {"temperature": 0.7, "top_p": 0.9, "max_tokens": 16, "ignore_eos": True},
        "top_logprobs": 2,
        "prompt_token_ids": [_PROMPT],
        "requests": requests,
        "concurrency": "batch",
        "fp32_head": fp32_head,
    }
    return _run(environment, cell, "generate.py", job, variables or {})


def _run(
    environment: Environment,
    cell: Path,
    script: str,
    job: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
) -> Outcome:
    cell.mkdir()
    document = json.dumps({"script": str(_SCRIPTS / script), **job})
    (cell / "job.json").write_text(document, encoding="utf-8")
    declared = {"VLLM_CPU_KVCACHE_SPACE": "1", **environment.variables, **(variables or {})}
    if job.get("fp32_head"):
        declared["PYTHONPATH"] = str(_EXTENSION)
    return launch(cell, environment.python, declared, _SECONDS)


def _packages(environment: Environment) -> str:
    wanted = ("python", "torch", "transformers", "numpy")
    return ", ".join(f"{name} {environment.versions[name]}" for name in wanted if name in environment.versions)


def _start_and_generation(outcome: Outcome) -> list[Symptom]:
    if outcome.failure:
        return [_outcome("starts", outcome, "")]
    resolved = outcome.result["resolved"]
    seconds = outcome.result["seconds"]
    tokens = outcome.result["generated_tokens"]
    return [
        Symptom("starts", True, f"{resolved['engine']} engine, {seconds:.0f} s with generation"),
        Symptom("generates", tokens > 0, f"{tokens} tokens with logprobs"),
    ]


def _outcome(name: str, outcome: Outcome, says: str) -> Symptom:
    if outcome.failure is None:
        return Symptom(name, True, says)
    return Symptom(name, False, f"{outcome.failure.boundary}: {outcome.failure.message}")


def _prefix_caching(default: Outcome, outcome: Outcome, folder: Path) -> Symptom:
    """The second round repeats the first round's prompt: what it reused is what the engine says it reused."""
    if outcome.failure:
        return _outcome("prefix caching", outcome, "")
    samples = folder / ("default" if outcome is default else "cached") / "samples.jsonl"
    usual = "on by default" if outcome is default else "off by default"
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    cached = rows[-1]["cached_tokens"]
    if cached is None:
        on = bool(outcome.result["resolved"]["enable_prefix_caching"])
        return Symptom("prefix caching", on, f"{usual}; resolved as {'on' if on else 'off'}, nothing counted")
    return Symptom("prefix caching", cached > 0, f"{usual}; {cached} of {len(_PROMPT)} prompt tokens reused")


def _logprobs_mode(default: Outcome, parity: Outcome, features: Mapping[str, Any]) -> Symptom:
    name = "logprobs modes"
    if default.result["resolved"]["engine"] == "V0":
        return Symptom(name, True, "V0 returns processed logprobs only")
    if not features["logprobs_modes"]:
        return Symptom(name, None, "raw only: this release has no logprobs_mode")
    return _outcome(name, parity, f"default {default.result['resolved']['logprobs_mode']}; processed works")


def _async_scheduling(parity: Outcome, features: Mapping[str, Any]) -> Symptom:
    name = "async scheduling"
    if not features["async_scheduling"]:
        return Symptom(name, None, "not in this release")
    if parity.failure:
        return _outcome(name, parity, "")
    resolved = parity.result["resolved"]["async_scheduling"]
    return Symptom(name, bool(resolved), "stays on when asked for" if resolved else "turned off by the engine")


def _fp32_head(parity: Outcome) -> Symptom:
    name = "fp32 head"
    if parity.failure:
        return _outcome(name, parity, "")
    native = parity.result["fp32_head"]["by"] == "native"
    return Symptom(name, True, "native" if native else "through rlaudit's worker extension")

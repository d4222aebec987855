"""The rollout side of an arm: its cell, and the sequences that it sampled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.engines.inside.execution import execution_args
from rlaudit.engines.inside.expected_engine import ExpectedEngine, resolution_of
from rlaudit.files.parse_json import parse_json
from rlaudit.laboratory.engine_cell import engine_cell
from rlaudit.laboratory.recorded_requests import RecordedRequests
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.studies.arms.plan import Arm, Role, known_factors
from rlaudit.laboratory.studies.arms.recipe import Block, Sampling
from rlaudit.laboratory.study import EngineWanted
from rlaudit.laboratory.treatment import Treatment
from rlaudit.tokens.integrity import integrity_fault
from rlaudit.tokens.pairs import LogprobPairs
from rlaudit.vllm.machine import Machine

# Copying a file takes less, even on a busy machine.
HANDED_OVER_SECONDS = 300.0
# Recorded tokens whose logprob every engine reports. Each is a prefill of its whole context if nothing is cached.
MOST_ASKED_AGAIN = {"cpu": 128, "cuda": 1024}


@dataclass(frozen=True)
class SampledSequence:
    """One completion as the engine returned it: token ids, the logprob of each, and the top logprobs beside it."""

    prompt: int
    sample: int
    round: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    top_ids: tuple[tuple[int, ...], ...]
    top_logprobs: tuple[tuple[float, ...], ...]
    cached_tokens: int
    finish_reason: str


def engine_settings(treatment: Treatment, device: str, who: str = "", model: str | None = None) -> EngineWanted:
    """Return the engine process of a treatment on `device`, cuda or cpu."""
    return EngineWanted(
        who,
        treatment.version,
        execution_args(treatment.version, treatment.engine_args, treatment.compiles, treatment.captures_graphs, device),
        model,
        treatment.engine,
        {**(treatment.cuda_variables if device == "cuda" else {}), **treatment.variables},
        treatment.fp32_head,
    )


def optional_engine_args(treatment: Treatment, device: str) -> dict[str, Any]:
    """Return further engine arguments, passed if the release has them and no other argument contradicts them."""
    return dict(treatment.cuda_engine_args) if device == "cuda" else {}


def engine_of(treatment: Treatment, machine: Machine, model: str | None = None) -> ExpectedEngine:
    """Return the engine, V0 or V1, that a treatment is expected to start on this machine."""
    return engine_settings(treatment, machine.platform).expected(machine, model)


def rollout_cell(context: RolloutContext, block: Block, arm: Arm, environment: Environment) -> Cell:
    """Return the job that generates an arm's sequences. Arms that differ only in their trainer share it."""
    used = block.prompts_used or len(context.prompt_token_ids)
    recorded = None if context.recorded is None else context.recorded.first(used, block.max_tokens)
    if arm.role is Role.RECORDED and recorded is not None:
        return recorded_cell(recorded, environment)
    treatment = arm.treatment
    prompts = list(context.prompt_token_ids[:used])
    return engine_cell(
        context,
        environment,
        script=ENGINE.generate,
        sources=ENGINE.generate_with,
        engine=engine_settings(treatment, context.device, arm.name, arm.model),
        job={
            "optional_engine_args": optional_engine_args(treatment, context.device),
            "requires": [
                {"factor": need.factor, "engine_args": list(need.engine_args), "modules": list(need.modules)}
                for need in treatment.requires
            ],
            "reads": read_besides(),
            "fp32_head": treatment.fp32_head,
            "sampling": dict(treatment.sampling),
            "top_logprobs": block.top_logprobs,
            "prompt_token_ids": prompts,
            "requests": requests(len(prompts), block.samples, block.rounds, context.seed, block.sampling.n)
            if recorded is None
            else requests_in_waves(recorded, block.samples, context.seed),
            **(
                {}
                if recorded is None or counts_what_was_sampled(block.sampling)
                else {"recorded_tokens": asked_again(recorded, prompts, context.device)}
            ),
            "concurrency": treatment.concurrency,
            "replicate": arm.replicate,
        },
        timeout_minutes=arm.timeout_minutes,
        refusal=known_factors()[arm.factor].refusal if arm.factor else None,
        timed=known_factors()[arm.factor].timed if arm.factor else False,
    )


def requests(prompts: int, samples: int, rounds: int, seed: int, n: int = 1) -> list[dict[str, int]]:
    """Return every (prompt, sample) with its seed, which is the same in every arm; with n, every n-th sample.

    Arms whose numbers agree then sample the same tokens, and a contrast between them is paired token by token. vLLM
    draws the completions of one request from consecutive seeds (v1/engine/parallel_sampling.py, V0's sequence.py), as
    the samples of a prompt have here: n changes no token unless a release seeds them otherwise.
    """
    rounds = min(rounds, samples // n)
    return [
        {
            "prompt": prompt,
            "sample": sample,
            "round": sample * rounds // samples,
            "seed": (seed * 1_000_003 + prompt * samples + sample) % 2**31,
        }
        for sample in range(0, samples, n)
        for prompt in range(prompts)
    ]


def flashinfer_not_seen(treatments: Iterable[Treatment], machine: Machine) -> list[str]:
    """Return a line that names the releases which may apply filters with FlashInfer, if any.

    vLLM draws a seeded request with its native sampler, never with FlashInfer's. So an ablation cannot show whether
    FlashInfer's kernel for top-k and top-p, the default since 0.21.0, draws from the right distribution. Source:
    vllm/v1/sample/ops/topk_topp_sampler.py (0.18.1:119, 0.32.0:297), vllm/v1/worker/gpu/sample/sampler.py (0.32.0:311).
    """
    using = (treatment for treatment in treatments if _may_use_flashinfer(treatment, machine))
    versions = sorted({treatment.version for treatment in using}, key=Version)
    if not versions:
        return []
    return [
        f"the FlashInfer sampler of vLLM {', '.join(versions)}: requests are seeded, and vLLM uses its native sampler "
        "for those; rollouts without seeds may be drawn by another kernel than the one seen here"
    ]


def _may_use_flashinfer(treatment: Treatment, machine: Machine) -> bool:
    if not {"top_k", "top_p"} & treatment.sampling.keys():
        return False
    settings = engine_settings(treatment, machine.platform)
    resolution = resolution_of(treatment.version, settings.engine_args, settings.variables(machine.platform), machine)
    return resolution.value("flashinfer_sampler") is not False


def requests_in_waves(recorded: RecordedRequests, samples: int, seed: int) -> list[dict[str, int]]:
    """Return a recording's requests in the order of their waves and, in a wave, of their arrival."""
    in_waves = [
        {**request, "round": recorded.wave_P[request["prompt"]], "after": recorded.arrival_P[request["prompt"]]}
        for request in requests(len(recorded.prompts), samples, 1, seed)
    ]
    return sorted(in_waves, key=itemgetter("round", "after"))


def counts_what_was_sampled(sampling: Sampling) -> bool:
    """Return whether a token's logprob depends on which tokens of its context were sampled.

    Then a recorded token cannot be replayed alone: the tokens sampled before it would be part of its prompt.
    """
    return bool(sampling.presence_penalty or sampling.frequency_penalty)


def asked_again(recorded: RecordedRequests, prompts: Sequence[Sequence[int]], device: str) -> list[dict[str, Any]]:
    """Return recorded tokens, each with its context, whose logprobs an engine reports."""
    return [
        {
            "prompt_token_ids": [*prompts[completion.prompt], *completion.token_ids[:place]],
            "token": completion.token_ids[place],
        }
        for completion, place in recorded.tokens(MOST_ASKED_AGAIN[device])
    ]


def recorded_cell(recorded: RecordedRequests, environment: Environment) -> Cell:
    """Return the job that hands over the recorded completions of the first weights, as if an engine sampled them."""
    rows = [{**completion.as_row(), "round": recorded.wave_P[completion.prompt]} for completion in recorded.completions]
    return Cell(
        job={
            "script": shipped(ENGINE.hand_over),
            "rows": rows,
            "engine": recorded.generation,
            "effective": recorded.effective,
            "reads": read_besides(),
        },
        command=environment.command,
        variables=dict(environment.variables),
        timeout_seconds=HANDED_OVER_SECONDS,
        identity={},
        sources=(ENGINE.generate,),
    )


def read_besides() -> dict[str, list[str]]:
    """Return the settings that factors read of a loaded configuration, each with its paths in all releases."""
    return {name: list(paths) for factor in known_factors().values() for name, paths in factor.reads.items()}


def read_sequences(directory: Path) -> tuple[SampledSequence, ...]:
    """Return the sequences of a finished rollout cell, ordered by prompt and sample."""
    with (directory / "samples.jsonl").open(encoding="utf-8") as lines:
        rows = [parse_json(line) for line in lines]
    sequences = [
        SampledSequence(
            prompt=row["prompt"],
            sample=row["sample"],
            round=row["round"],
            token_ids=tuple(row["token_ids"]),
            logprobs=tuple(row["logprobs"]),
            top_ids=tuple(tuple(ids) for ids in row["top_ids"]),
            top_logprobs=tuple(tuple(values) for values in row["top_logprobs"]),
            cached_tokens=row["cached_tokens"] or 0,
            finish_reason=row["finish_reason"],
        )
        for row in rows
    ]
    return tuple(sorted(sequences, key=lambda sequence: (sequence.prompt, sequence.sample)))


def broken_logprobs(sequences: Sequence[SampledSequence]) -> Failure | None:
    """Return why an engine's logprobs cannot be compared: NaN, infinite or positive values, or nothing sampled."""
    logprobs_T = np.array([value for sequence in sequences for value in sequence.logprobs], dtype=np.float64)
    lengths_S = [len(sequence.token_ids) for sequence in sequences]
    pairs = LogprobPairs(
        rollout_logprobs_T=logprobs_T,
        trainer_logprobs_T=np.where(np.isfinite(logprobs_T), np.minimum(logprobs_T, 0.0), -1.0),
        sequence_T=np.repeat(np.arange(len(sequences)), lengths_S),
        prompt_S=np.array([sequence.prompt for sequence in sequences], dtype=np.int64),
    )
    fault = integrity_fault(pairs)
    return None if fault is None else Failure("integrity", fault)

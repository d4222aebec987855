"""A recipe of arms: engines that differ in one factor at a time, each with one set of weights.

A recipe names a model, prompts and how to sample, and one or more blocks. A block is one controlled comparison: a
reference, a candidate, factors tried one at a time from the candidate, a parity arm that has all fixes, and each fix
left out of it again. On machines without a GPU, `cpu:` in the recipe or in a block overrides the keys beside it; null
in it removes a key.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from rlaudit.laboratory.recipe import (
    AnyRecipe,
    DtypeName,
    Engine,
    Keys,
    Level,
    Levels,
    Profile,
    Version,
    merged,
    validated,
    with_profile,
)


class Sampling(Keys):
    """How tokens are sampled, in vLLM's own names. The trainer is assumed to know these values."""

    temperature: float = Field(1.0, gt=0, le=10, description="Sampling temperature; 0 (greedy) has no policy ratio.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus mass; 1 is off.")
    top_k: int = Field(0, ge=-1, description="Most probable tokens kept; 0 or -1 is off.")
    min_p: float = Field(0.0, ge=0, lt=1, description="Share of the top probability a token must have; 0 is off.")
    repetition_penalty: float = Field(1.0, gt=0, description="1 is off.")
    presence_penalty: float = Field(0.0, ge=-2, le=2, description="0 is off.")
    frequency_penalty: float = Field(0.0, ge=-2, le=2, description="0 is off.")
    logit_bias: dict[int, float] = Field(default_factory=dict, description="Added to the logits of these token ids.")
    n: int = Field(1, ge=1, description="Completions that one request returns; `samples` is a multiple of it.")
    ignore_eos: bool = Field(False, description="Go on past the end-of-sequence token.")


class Trainer(Keys):
    """How the trainer recomputes logprobs."""

    dtype: DtypeName = Field("bfloat16", description="Dtype of the trainer's forward pass.")
    head_dtype: Literal["same", "float32", "bfloat16", "float16"] = Field(
        "same", description="Dtype of the output head; same: that of the forward pass."
    )
    attention: Literal["sdpa", "eager", "flash_attention_2"] = Field("sdpa", description="transformers' attention.")
    temperature: Literal["divide", "ignore"] = Field(
        "divide", description="Whether the trainer divides its logits by the sampling temperature."
    )
    replay_filters: bool = Field(
        False, description="Whether the trainer repeats top-k, top-p and min-p before it normalises."
    )
    batch_tokens: int = Field(4096, ge=1, description="Tokens of a micro-batch, padding included.")


class Point(Keys):
    """An engine to compare: a release, its factor levels and its engine arguments."""

    version: Version = Field(description="vLLM release, such as 0.18.1.")
    engine: Engine = None
    levels: dict[str, Level] = Field(
        default_factory=dict, description="Factor levels; the others stay at their defaults."
    )
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments of this point only.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of this point only.")


class ExtraArm(Keys):
    """An arm outside the design, compared with the candidate."""

    name: str = Field(description="What the arm is called in the report.")
    levels: dict[str, Level] = Field(default_factory=dict, description="Factor levels on top of the candidate.")
    version: Version | None = Field(None, description="Another release than the candidate's.")
    engine: Engine = None
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments on top of the candidate's.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of the engine process.")
    model: str | None = Field(None, description="Another model than the recipe's.")
    timeout_minutes: float | None = Field(None, gt=0, description="Another limit than the recipe's.")


class _Common(Keys):
    """Keys that a recipe sets for all blocks and a block may set for itself."""

    sampling: Sampling = Field(default_factory=Sampling, description="How tokens are sampled.")
    trainer: Trainer = Field(default_factory=Trainer, description="How the trainer recomputes logprobs.")
    engine_args: dict[str, Any] = Field(
        default_factory=dict,
        description="Arguments of vLLM's LLM(...) for every arm: tensor_parallel_size, gpu_memory_utilization, ...",
    )
    environment_variables: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of every engine process; stray VLLM_* of the shell are removed.",
    )
    prompts_used: int | None = Field(None, ge=1, description="How many prompts of the file; all by default.")
    samples: int = Field(2, ge=1, description="Completions per prompt.")
    rounds: int = Field(2, ge=1, description="In how many submissions: a prompt that comes again can hit a cache.")
    max_tokens: int = Field(64, ge=1, description="Longest completion, in tokens.")
    top_logprobs: int = Field(5, ge=2, le=20, description="Logprobs per position, for the precision of the head.")


class Block(_Common):
    """One controlled comparison."""

    name: str = Field(description="What the block is called in the report.")
    reference: Point | None = Field(
        None, description="The engine whose behaviour is to be kept; none compares with the trainer only."
    )
    candidate: Point = Field(description="The engine to move to, with its defaults.")
    factors: dict[str, Levels] = Field(
        default_factory=dict, description="Factor: level, or levels, tried one at a time from the candidate."
    )
    parity: list[str] = Field(
        default_factory=list,
        description="Which of the factors, at their first level, make up the parity arm.",
    )
    leave_one_out: bool = Field(True, description="Try the parity arm again without each of its factors.")
    repeats: int = Field(1, ge=0, description="Repeats of candidate and parity arm, which show the noise.")
    arms: list[ExtraArm] = Field(default_factory=list, description="Further arms.")
    native_dtype: DtypeName | None = Field(
        None, description="Leave the block out on a processor that only emulates this dtype: that takes hours."
    )


class Recipe(AnyRecipe, _Common):
    """What to ablate."""

    blocks: list[Block] = Field(min_length=1, description="The comparisons.")
    left_out: list[str] = Field(default_factory=list, description="What of a recorded engine the arms lack, and why.")

    def overridden(self, *, samples: int | None = None, **options: Any) -> "Recipe":
        """Return the recipe with the options of the command line in place of its own."""
        changed = super().overridden(**options)
        if samples is None:
            return changed
        blocks = [block.model_copy(update={"samples": samples}) for block in changed.blocks]
        return changed.model_copy(update={"blocks": blocks})


MODELS = (Recipe, Block, Point, Sampling, Trainer, ExtraArm)


def recipe_of(document: dict[str, Any], path: Path, profile: Profile) -> Recipe:
    """Return the recipe of plain data. Raises UsageError naming `path` and the wrong key."""
    recipe = with_profile(document, profile)
    shared = {key: recipe[key] for key in _Common.model_fields if key in recipe}
    blocks = recipe.get("blocks")
    if isinstance(blocks, list):
        recipe["blocks"] = [
            merged(shared, with_profile(block, profile)) if isinstance(block, dict) else block for block in blocks
        ]
    return validated(Recipe, recipe, path, MODELS)

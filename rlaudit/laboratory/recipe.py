"""A recipe: what to ablate, in one YAML file. Every key is documented where it is declared, and unknown keys are
errors.

A recipe names a model, prompts and how to sample, and one or more blocks. A block is one controlled comparison: a
reference, a candidate as it is, factors tried one at a time from the candidate, a parity arm that has the fixes
together, and each fix left out of it again. `cpu:`, in the recipe or in a block, is laid over what stands beside it on
machines without a GPU; null in it takes a key out.
"""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rlaudit.errors import UsageError
from rlaudit.secrets import MASK, learn, masked_places
from rlaudit.vllm.resolution.engine import EngineKind
from rlaudit.yaml_file import read_yaml_file


def _text_of_version(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError(f'YAML reads {value} as a number; write the version in quotes, as "{value}"')
    return value


def _text_of_switch(value: Any) -> Any:
    """YAML 1.1 reads on and off as booleans; a level is a word."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _list_of_levels(value: Any) -> Any:
    return [_text_of_switch(item) for item in (value if isinstance(value, list) else [value])]


RECIPE_SCHEMA = "rlaudit-recipe/1"
Version = Annotated[str, BeforeValidator(_text_of_version)]
Level = Annotated[str, BeforeValidator(_text_of_switch)]
Levels = Annotated[list[Level], BeforeValidator(_list_of_levels)]
DtypeName = Literal["float32", "bfloat16", "float16"]
Engine = Annotated[
    EngineKind | None,
    Field(description="V0 or V1: an arm that loads the other one fails. Unset: what the release starts by itself."),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, protected_namespaces=())


class Sampling(_Strict):
    """How tokens are sampled, in vLLM's own names. The trainer is assumed to know these values."""

    temperature: float = Field(1.0, gt=0, le=10, description="Sampling temperature; 0 (greedy) has no policy ratio.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus mass; 1 is off.")
    top_k: int = Field(0, ge=-1, description="Most probable tokens kept; 0 or -1 is off.")
    min_p: float = Field(0.0, ge=0, lt=1, description="Share of the top probability a token must have; 0 is off.")
    repetition_penalty: float = Field(1.0, gt=0, description="1 is off.")
    presence_penalty: float = Field(0.0, ge=-2, le=2, description="0 is off.")
    frequency_penalty: float = Field(0.0, ge=-2, le=2, description="0 is off.")
    ignore_eos: bool = Field(False, description="Go on past the end-of-sequence token.")


class Trainer(_Strict):
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


class Objective(_Strict):
    """The clip range of the training objective: [low, high], as used in 1-low .. 1+high. Where only one is written,
    only that one decides a verdict."""

    ppo_epsilon: tuple[float, float] = Field((0.2, 0.2), description="Token clip range of PPO and GRPO.")
    gspo_epsilon: tuple[float, float] = Field((3e-4, 4e-4), description="Sequence clip range of GSPO.")


class Point(_Strict):
    """An engine to compare: a release, factor levels set on it, and engine arguments of its own."""

    version: Version = Field(description="vLLM release, such as 0.18.1.")
    engine: Engine = None
    levels: dict[str, Level] = Field(default_factory=dict, description="Factor levels; what is not set is as it is.")
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments of this point only.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of this point only.")


class ExtraArm(_Strict):
    """An arm outside the design, compared with the candidate."""

    name: str = Field(description="What the arm is called in the report.")
    levels: dict[str, Level] = Field(default_factory=dict, description="Factor levels on top of the candidate.")
    version: Version | None = Field(None, description="Another release than the candidate's.")
    engine: Engine = None
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments on top of the candidate's.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of the engine process.")
    model: str | None = Field(None, description="Another model than the recipe's.")
    timeout_minutes: float | None = Field(None, gt=0, description="Another limit than the recipe's.")


class _Common(_Strict):
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
    candidate: Point = Field(description="The engine to move to, as it is.")
    factors: dict[str, Levels] = Field(
        default_factory=dict, description="Factor: level, or levels, tried one at a time from the candidate."
    )
    parity: list[str] = Field(
        default_factory=list,
        description="Which of the factors, at their first level, make up the parity arm.",
    )
    leave_one_out: bool = Field(True, description="Try the parity arm again without each of its factors.")
    repeats: int = Field(1, ge=0, description="A/A repeats of candidate and parity arm, for the noise floor.")
    arms: list[ExtraArm] = Field(default_factory=list, description="Further arms.")
    native_dtype: DtypeName | None = Field(
        None, description="Leave the block out on a processor that only emulates this dtype: that takes hours."
    )


class Recipe(_Common):
    """What to ablate."""

    schema_: Literal["rlaudit-recipe/1"] = Field(
        "rlaudit-recipe/1", alias="schema", description="Version of this format."
    )
    description: str = Field("", description="The question this recipe answers.")
    model: str = Field("smollm2-135m-instruct", description="The default model by name, a path, or a hub id.")
    revision: str | None = Field(None, description="Revision of a hub model.")
    trust_remote_code: bool = Field(False, description="Run code out of the model's repository. Off unless said here.")
    prompts: str = Field("arithmetic", description="A prompt set by name, a .txt (one a line) or a .jsonl file.")
    seed: int = Field(0, ge=0, description="Seed of sampling, arm order and bootstrap.")
    objective: Objective = Field(default_factory=Objective, description="Clip ranges of the training objective.")
    equivalence_margin: float | None = Field(
        None,
        gt=0,
        description="k3 in nats below which rollout and trainer count as the same. Left out: no farther than the "
        "reference; without a reference, what the clip ranges of objective feel.",
    )
    timeout_minutes: float = Field(20.0, gt=0, description="Longest life of one engine process.")
    blocks: list[Block] = Field(min_length=1, description="The comparisons.")


COMMON_KEYS = tuple(_Common.model_fields)


@dataclass(frozen=True)
class LoadedRecipe:
    """A recipe with where it came from and which profile applies (`cpu` or `cuda`)."""

    recipe: Recipe
    path: Path
    profile: str


def recipe_folders() -> Iterator[Path]:
    """Where recipes are found by name: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "recipes", package.parent / "recipes"):
        if folder.is_dir():
            yield folder


def find_recipe(name_or_path: str) -> Path:
    """A recipe by path, or by name among those that travel with rlaudit. Raises UsageError when there is none."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or os.sep in name_or_path:
        if path.is_file():
            return path
        known = _known_names()
        if path.stem in known:
            return known[path.stem]
        raise UsageError(f"no recipe at {path}", hint=f"recipes by name: {', '.join(sorted(known))}")
    known = _known_names()
    if name_or_path not in known:
        nearest = difflib.get_close_matches(name_or_path, known, n=1)
        meant = f"did you mean {nearest[0]}? " if nearest else ""
        raise UsageError(f"no recipe named {name_or_path!r}", hint=f"{meant}there are: {', '.join(sorted(known))}")
    return known[name_or_path]


def _known_names() -> dict[str, Path]:
    return {path.stem: path for folder in recipe_folders() for path in sorted(folder.glob("*.yaml"))}


def load_recipe(name_or_path: str, profile: Literal["cpu", "cuda"]) -> LoadedRecipe:
    """Read, overlay the profile, and validate. Raises UsageError naming the key, what was expected and what was
    found."""
    path = find_recipe(name_or_path)
    document = read_yaml_file(path)
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds {type(document).__name__}, not a mapping of recipe keys")
    return recipe_of(document, path, profile)


def recipe_of(document: dict[str, Any], path: Path, profile: Literal["cpu", "cuda"]) -> LoadedRecipe:
    """The recipe that plain data holds; `path` is named in errors. Raises UsageError as `load_recipe` does."""
    know_secrets(document, path)
    try:
        return LoadedRecipe(Recipe.model_validate(overlay(document, profile)), path, profile)
    except ValidationError as error:
        raise UsageError(f"{path}: {_first_complaint(error)}") from error


def know_secrets(document: dict[str, Any], path: Path) -> None:
    """Leave the recipe's secrets out of all that is written from now on. Raises UsageError where one was masked."""
    learn(document)
    if masked := masked_places(document):
        raise UsageError(
            f"{path}: {masked[0]} was written without its secret",
            f"put it in for {MASK}, or leave the line out: engines get HF_TOKEN of the shell",
        )


def overlay(document: dict[str, Any], profile: str) -> dict[str, Any]:
    """The document with `cpu` laid over it (on CPU) or removed, and the recipe's common keys handed to each block."""
    recipe = _with_profile(document, profile)
    shared = {key: recipe[key] for key in COMMON_KEYS if key in recipe}
    blocks = recipe.get("blocks")
    if isinstance(blocks, list):
        recipe["blocks"] = [
            _merge(shared, _with_profile(block, profile)) if isinstance(block, dict) else block for block in blocks
        ]
    return recipe


def _with_profile(mapping: dict[str, Any], profile: str) -> dict[str, Any]:
    plain = {key: value for key, value in mapping.items() if key != "cpu"}
    on_cpu = mapping.get("cpu", {})
    return _merge(plain, on_cpu) if profile == "cpu" and isinstance(on_cpu, dict) else plain


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
            continue
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _first_complaint(error: ValidationError) -> str:
    """One sentence for the first thing wrong, with the nearest known key for an unknown one."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "extra_forbidden":
        known = sorted(
            {
                name
                for model in (Recipe, Block, Point, Sampling, Trainer, Objective, ExtraArm)
                for name in model.model_fields
            }
            - {"schema_"}
        )
        nearest = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        return f"unknown key {where}{f'; did you mean {nearest[0]}?' if nearest else ''}{more}"
    return f"{where or 'recipe'}: {problem['msg']}{more}"

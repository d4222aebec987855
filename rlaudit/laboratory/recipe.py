"""The keys that the recipes of all studies share, and how a recipe is found and read.

A recipe is one YAML file. Every key is documented at its declaration, and unknown keys are errors. Each study has a key
that only its recipes have (study.py).
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rlaudit.errors import UsageError
from rlaudit.files.yaml_file import read_yaml_file
from rlaudit.secrets import MASK, learn, masked_places
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.vllm.resolution.engine import EngineKind

if TYPE_CHECKING:
    from rlaudit.statistics.measurement.metric import ObjectiveSettings


def _text_of_version(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError(f'YAML reads {value} as a number; write the version in quotes, as "{value}"')
    return value


def _text_of_level(value: Any) -> Any:
    """YAML 1.1 reads on and off as booleans and 32 as a number; a level is a word."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int) else value


def _list_of_levels(value: Any) -> Any:
    return [_text_of_level(item) for item in (value if isinstance(value, list) else [value])]


RECIPE_SCHEMA = "rlaudit-recipe/1"
# Keys whose value may be a file.
NAMES_OF_FILES = ("prompts", "reward")
# Keys that a release removed, and what replaces each.
REMOVED = {
    "versions": "a recipe is of two releases; what was measured of each: rlaudit explain VERSION; where a metric "
    "moves: rlaudit ablate RECIPE --bisect METRIC"
}
Profile = Literal["cpu", "cuda"]
Version = Annotated[str, BeforeValidator(_text_of_version)]
Level = Annotated[str, BeforeValidator(_text_of_level)]
Levels = Annotated[list[Level], BeforeValidator(_list_of_levels)]
DtypeName = Literal["float32", "bfloat16", "float16"]
Engine = Annotated[
    EngineKind | None,
    Field(description="V0 or V1: an arm that loads the other one fails. Unset: what the release starts by itself."),
]


class Keys(BaseModel):
    """Keys of a recipe. One that is not declared is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, protected_namespaces=())


class Objective(Keys):
    """The clip ranges of the training objective: [low, high], as used in 1-low .. 1+high.

    If only one is written, only that one decides a verdict.
    """

    ppo_epsilon: tuple[float, float] = Field((0.2, 0.2), description="Token clip range of PPO and GRPO.")
    gspo_epsilon: tuple[float, float] = Field((3e-4, 4e-4), description="Sequence clip range of GSPO.")

    def as_settings(self) -> "ObjectiveSettings":
        """Return the ranges for the metrics. Those that are written are the objective's; both are if none is."""
        # Statistics take half a second to import; reading a recipe should not wait for that.
        from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

        ranges = {Clip.TOKENS: "ppo_epsilon", Clip.SEQUENCES: "gspo_epsilon"}
        written = tuple(clip for clip, key in ranges.items() if key in self.model_fields_set)
        return ObjectiveSettings(*self.ppo_epsilon, *self.gspo_epsilon, written or tuple(Clip))


class AnyRecipe(Keys):
    """The keys that the recipes of all studies share."""

    schema_: Literal["rlaudit-recipe/1"] = Field(
        "rlaudit-recipe/1", alias="schema", description="Version of this format."
    )
    description: str = Field("", description="The question this recipe answers.")
    model: str = Field("smollm2-135m-instruct", description="The default model by name, a path, or a hub id.")
    revision: str | None = Field(None, description="Revision of a hub model.")
    stands_for: str = Field("", description="The model of the training, if another one is measured in its place.")
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

    @property
    def prompts_read(self) -> int | None:
        """How many prompts of the set a run reads; None for all."""
        return None

    def quickened(self) -> Self:
        """Return the recipe's short form. Raises UsageError if it has none."""
        raise UsageError("this recipe has no short form: --quick is for recipes with a key `quick`")

    def overridden(self, **options: Any) -> Self:
        """Return the recipe with the options of the command line in place of its own; None leaves a key as it is."""
        return self.model_copy(update={name: value for name, value in options.items() if value is not None})


SomeRecipe = TypeVar("SomeRecipe", bound=AnyRecipe)


def recipe_folders() -> Iterator[Path]:
    """Yield the folders of shipped recipes: inside the installed package, and beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "recipes", package.parent / "recipes"):
        if folder.is_dir():
            yield folder


def find_recipe(name_or_path: str) -> Path:
    """Find a recipe by path, or by name among those that are shipped. Raises UsageError if there is none."""
    path = Path(name_or_path)
    is_path = path.suffix in (".yaml", ".yml") or os.sep in name_or_path
    if is_path and path.is_file():
        return path
    recipes = _recipes_by_name()
    if is_path:
        if path.stem in recipes:
            return recipes[path.stem]
        raise UsageError(
            f"{path}: no such file", hint=f"expected a recipe, or a config with --from and --to. {_by_name(recipes)}"
        )
    if name_or_path not in recipes:
        hint = f"{did_you_mean(name_or_path, recipes)} {_by_name(recipes)}".lstrip()
        raise UsageError(f"no recipe named {name_or_path!r}", hint=hint)
    return recipes[name_or_path]


def _by_name(recipes: Iterable[str]) -> str:
    return f"Recipes by name: {', '.join(sorted(recipes))}"


def names_recipe(name: str) -> bool:
    """Return whether this is the name of a shipped recipe and of no file or folder here."""
    return name in _recipes_by_name() and not Path(name).exists()


def recipe_names() -> list[str]:
    """Return the names of the shipped recipes."""
    return list(_recipes_by_name())


def _recipes_by_name() -> dict[str, Path]:
    return {path.stem: path for folder in recipe_folders() for path in sorted(folder.glob("*.yaml"))}


def read_recipe(name_or_path: str) -> tuple[dict[str, Any], Path]:
    """Return the plain data of a recipe, and its file. Raises UsageError if there is none, or no mapping in it."""
    path = find_recipe(name_or_path)
    document = read_yaml_file(path)
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds {type(document).__name__}, not a mapping of recipe keys")
    return _with_paths(document, path.parent), path


def _with_paths(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the recipe with paths for the files beside it: it means the same in every working directory."""
    resolved: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            resolved[key] = _with_paths(value, folder)
        elif key in NAMES_OF_FILES and isinstance(value, str) and (folder / value).is_file():
            resolved[key] = str(folder / value)
        else:
            resolved[key] = value
    return resolved


def validated(kind: type[SomeRecipe], document: dict[str, Any], path: Path, models: Sequence[type[Keys]]) -> SomeRecipe:
    """Return the recipe of plain data, and mask its secrets in everything that is written from now on.

    models: all classes whose keys may occur in it. Raises UsageError naming the wrong key and the nearest valid one, or
    a secret that was masked.
    """
    learn(document)
    if masked := masked_places(document):
        raise UsageError(
            f"{path}: {masked[0]} was written without its secret",
            f"put it in for {MASK}, or leave the line out: engines get HF_TOKEN of the shell",
        )
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise UsageError(f"{path}: {_first_complaint(error, models)}") from error


def with_profile(mapping: dict[str, Any], profile: Profile) -> dict[str, Any]:
    """Return the mapping with its `cpu` laid over it on a CPU, and without that key elsewhere."""
    plain = {key: value for key, value in mapping.items() if key != "cpu"}
    on_cpu = mapping.get("cpu", {})
    return merged(plain, on_cpu) if profile == "cpu" and isinstance(on_cpu, dict) else plain


def merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return one mapping laid over another, key by key; null takes a key out."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if value is None:
            result.pop(key, None)
            continue
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _first_complaint(error: ValidationError, models: Sequence[type[Keys]]) -> str:
    """Return a sentence for the first unknown key, with the nearest valid one; else for the first error.

    A slip in a key leaves the one that was meant missing.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in problem["loc"])
    others = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "extra_forbidden":
        kinds: Sequence[type[Keys]] = (Objective, *models)
        keys = sorted({name for kind in kinds for name in kind.model_fields} - {"schema_"})
        meant = did_you_mean(str(problem["loc"][-1]), keys)
        if where in REMOVED:
            return f"the key {where} was removed: {REMOVED[where]}"
        return f"unknown key {where}{f'; {meant}' if meant else ''}{others}"
    return f"{where or 'recipe'}: {problem['msg']}{others}"


@dataclass(frozen=True)
class Experiment:
    """A recipe that is generated from a rollout config or a recording."""

    # Plain data (`rlaudit-recipe/1`).
    document: Mapping[str, Any]
    # Sentences about what in it differs from the config or recording.
    changed: tuple[str, ...]

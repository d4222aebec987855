"""prime-rl: TOML with the sections inference, orchestrator and trainer, `--section.key value` overrides, k8s values."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import of_word
from rlaudit.configs.command_lines import command_lines
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.prime_rl.engine import collect_engine, model_of, replicas_of
from rlaudit.configs.dialects.prime_rl.layout import FLAT, Layout, layout
from rlaudit.configs.dialects.prime_rl.trainer import collect_facts, collect_sampling
from rlaudit.configs.draft import Draft, known
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.merging import mapping_of, merged, nested
from rlaudit.configs.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.toml_edits import toml_writer

_ENTRIES = ("rl", "inference", "orchestrator", "trainer")
_CONFIGS = ("packages/prime-rl-configs/src/prime_rl/configs/inference.py", "src/prime_rl/configs/inference.py",
            "prime_rl/configs/inference.py")  # fmt: skip
# Fields of its config are arguments of the engine; while inference was flat, they became some in `to_vllm`.
FILES = FrameworkFiles(
    "prime_rl",
    engine=(
        "src/prime_rl/inference/vllm/server.py", "prime_rl/inference/vllm/server.py",
        *(f"{file}#VllmConfig" for file in _CONFIGS),
        *(f"{file}#InferenceConfig" for file in ("src/prime_rl/inference/config.py", *_CONFIGS)),
    ),
)  # fmt: skip
_SECTIONS = ("inference", "orchestrator", "trainer")


def recognise(source: Source) -> bool:
    """Whether the file is prime-rl's TOML, starts it with overrides, or is its helm chart's values."""
    if source.suffix == ".toml":
        return layout(_toml(source)) is not None
    if "inference" not in source.text:
        return False
    return _is_chart(mapping_of(source)) or any(True for _ in _lines(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The rollout engine of the file, whichever of its sections are there."""
    if source.suffix == ".toml":
        root = _toml(source)
        found = layout(root)
        return (_config(source, found, vllm),) if found is not None else ()
    configs = tuple(_of_command(source, command, vllm) for command in _lines(source))
    root = mapping_of(source)
    if configs or not _is_chart(root) or root is None:
        return configs
    return (_of_chart(source, root),)


def _toml(source: Source) -> Node | None:
    try:
        return source.toml
    except (ValueError, RecursionError):
        return None


def _config(source: Source, found: Layout, vllm: Version, parts: tuple[str, ...] = ()) -> RolloutConfig:
    draft = Draft("prime_rl", source.path, parts=parts)
    if found.inference is not None:
        collect_engine(draft, found, vllm)
    collect_sampling(draft, found)
    collect_facts(draft, found, vllm)
    for section in dict.fromkeys((found.root, found.inference, found.trainer)):
        if section is not None:
            draft.list_options(section, "weight_broadcast")
    if found.trainer is not None:
        draft.list_options(found.trainer, "loss")
    if found.orchestrator is not None:
        draft.list_options(
            found.orchestrator, "rollouts_per_example", "group_size", "max_async_level", "max_off_policy_steps"
        )
    draft.list_options(found.root, *(f"deployment.{name}" for name in ("num_infer_nodes", "num_infer_replicas")))
    replicas = replicas_of(found)
    if replicas is not None:
        draft.trains("replicas", replicas, "deployment")
        draft.trains("seeds_replicas", False, "every replica is started with the same inference.seed")
    else:
        draft.not_seen.append("the number of inference engines")
    looked_up = FILES if found.inference is not None else replace(FILES, engine=())
    hold_against(draft, looked_up, FILES.checkout(source), vllm)
    sampling = draft.sampling
    config = draft.done(model=model_of(found), offline=False, place=_home(found), write=_write(source, found))
    if isinstance(sampling, Elsewhere):
        config = replace(config, sampling=sampling)
    if found.inference is None:
        reason = "the inference server is configured in another file"
        config = replace(
            config, engine=Elsewhere(reason), not_seen=(*config.not_seen, f"every engine argument: {reason}")
        )
    return config


def _home(found: Layout) -> Any:
    section = found.inference or found.orchestrator or found.root
    return section.key or section.place


def _write(source: Source, found: Layout) -> Any:
    """Into [inference.vllm], or the old fields and [inference.vllm_extra]."""
    inference = found.inference
    if inference is None or source.suffix != ".toml":
        return lambda _name, _value: None
    table = inference.get("vllm")
    fields = {argument: path for path, argument in FLAT.items()}
    extra = inference.get("vllm_extra")

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        if table is not None and isinstance(table.value, dict):
            return toml_writer(table, _spell, source.text)(name, value)
        path = fields.get(name, "").split(".")
        if path[-1] and found.passes_through is not None:
            home = inference if len(path) == 1 else inference.get(path[0])
            if home is not None:
                rename = path[-1]
                return toml_writer(home, lambda wanted, given: _respell(rename, wanted, given), source.text)(
                    name, value
                )
        if extra is not None and isinstance(extra.value, dict):
            return toml_writer(extra, _spell, source.text)(name, value)
        return None

    return write


def _respell(key: str, name: str, value: Any) -> tuple[str, str] | None:
    spelt = _spell(name, value)
    return None if spelt is None else (key, spelt[1])


def _spell(name: str, value: Any) -> tuple[str, str] | None:
    if isinstance(value, bool):
        return name, str(value).lower()
    if isinstance(value, int | float):
        return name, str(value)
    if isinstance(value, str):
        return name, f'"{value}"'
    return None


def _lines(source: Source) -> Iterator[Command]:
    """`uv run rl @ file.toml --inference.vllm.x y` and the entry points of single sections."""
    for command in command_lines(source, *(f"{entry} @" for entry in _ENTRIES), "--inference", "--vllm."):
        if _entry(command) is not None and _tree(command, source)[0] is not None:
            yield command


def _entry(command: Command) -> tuple[str, int] | None:
    for at, word in enumerate(command.words):
        name = PurePath(word.value).name if isinstance(word.value, str) else ""
        started = at > 0 and command.words[at - 1].value == "run"
        if name in _ENTRIES and (at == 0 or started):
            return name, at + 1
        if re.fullmatch(r"prime_rl\.(entrypoints|inference)\.\w+", name):
            return name.rpartition(".")[2].replace("server", "inference"), at + 1
    return None


def _tree(command: Command, source: Source) -> tuple[Node | None, tuple[str, ...], tuple[str, ...]]:
    """The overrides over the files named by `@`, their paths, and the names of files that are not beside this one."""
    found = _entry(command)
    if found is None:
        return None, (), ()
    entry, at = found
    words = command.words[at:]
    tree: Node | None = None
    parts: list[str] = []
    missing: list[str] = []
    section: tuple[str, ...] = () if entry == "rl" else (entry,)
    for index, word in enumerate(words):
        if word.value != "@" or index + 1 == len(words) or not isinstance(words[index + 1].value, str):
            continue
        before = words[index - 1].value if index else ""
        home = (before[2:],) if isinstance(before, str) and before[2:] in _SECTIONS else section
        name = words[index + 1].value
        beside = source.named_file(words[index + 1])
        root = _toml(beside) if beside is not None else None
        if beside is None or root is None:
            missing.append(name)
            continue
        parts.append(beside.path)
        tree = nested(home, root) if tree is None else merged(tree, nested(home, root))
    touched = False
    for flag in flags(words):
        path = tuple(flag.name.split("."))
        if flag.value is None or not flag.name or flag.value.value == "@":
            if flag.value is None and flag.name and path[0] in _SECTIONS:
                leaf = Node(True, flag.place, flag.place)
            else:
                continue
        else:
            leaf = of_word(flag.value, flag.place)
        touched = touched or path[0] in {*_SECTIONS, "vllm"} or bool(section)
        branch = nested((*section, *path), leaf)
        tree = branch if tree is None else merged(tree, branch)
    return (tree if touched else None), tuple(parts), tuple(missing)


def _of_command(source: Source, command: Command, vllm: Version) -> RolloutConfig:
    tree, parts, missing = _tree(command, source)
    assert tree is not None
    found = Layout(tree, tree.get("inference"), tree.get("orchestrator"), tree.get("trainer"))
    config = _config(source, found, vllm, parts)
    engine = {name: _overriding(setting, source) for name, setting in config.engine.items()}
    if missing:
        reason = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not beside this file"
        given = {name: one for name, one in engine.items() if one.origin is not Origin.FRAMEWORK}
        config = replace(
            config, engine=Elsewhere(reason, given), not_seen=(*config.not_seen, f"every setting of {reason}")
        )
        sampling = {name: one for name, one in config.sampling.items() if one.origin is not Origin.FRAMEWORK}
        return replace(config, sampling=Elsewhere(reason, sampling))
    return replace(
        config, engine=Elsewhere(config.engine.reason, engine) if isinstance(config.engine, Elsewhere) else engine
    )


def _overriding(setting: Setting, source: Source) -> Setting:
    here = setting.place is not None and setting.place.path == source.path
    return replace(setting, origin=Origin.OVERRIDE) if here else setting


def _is_chart(root: Node | None) -> bool:
    """The helm values: an image of prime-rl, and a component per section."""
    if root is None or not all(isinstance(root.get(name), Node) for name in _SECTIONS):
        return False
    image = known(root.get("image", "repository"), "")
    return "prime-rl" in str(image)


def _of_chart(source: Source, root: Node) -> RolloutConfig:
    """Values without a command: what runs is started by hand, or by values on top of these."""
    draft = Draft("prime_rl", source.path)
    replicas = root.get("inference", "replicas")
    if replicas is not None and isinstance(replicas.value, int):
        draft.trains("replicas", replicas.value, "inference.replicas of the chart", replicas)
    command = root.get("inference", "command")
    text = known(command, "")
    reason = (
        f"the config named in inference.command ({text}) is not beside this file" if text
        else "inference.command is empty: the server is started by hand or by values on top of these"
    )  # fmt: skip
    draft.not_seen.append(f"every engine argument and sampling parameter: {reason}")
    place = command.place if command is not None else root.place
    config = draft.done(place=place)
    return replace(config, engine=Elsewhere(reason), sampling=Elsewhere(reason))


DIALECT = Dialect("prime_rl", "prime-rl", 10, recognise, read)

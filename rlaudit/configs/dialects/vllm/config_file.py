"""The YAML file of `vllm serve --config`: a flat mapping of the server's own arguments.

What is written does not always arrive: vLLM drops a `false` up to 0.27.1, and from 0.28.0 on if the key is spelt with
underscores; see config_loader.py. Flags of the command line win, and this file does not show them.
"""

from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.config_loader import take_config_file
from rlaudit.configs.dialects.vllm.flags import FlagReader
from rlaudit.configs.draft import Draft
from rlaudit.configs.engine_names import SHORT, affirmed, canonical, dashed
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell, scalar_text
from rlaudit.configs.syntax.yaml_edits import yaml_writer
from rlaudit.vllm.catalogue import Catalogue, known_versions

NAME = "vllm-config-file"
# Names that many other programs use too: a file of these alone is not known to be vLLM's.
_COMMON = {
    "model", "tokenizer", "dtype", "seed", "host", "port", "revision", "config", "load_format", "quantization", "name",
    "device", "download_dir", "api_key", "log_level", "task", "trust_remote_code", "root_path", "runner",
    "max_model_len",
}  # fmt: skip
_MOST_KEYS = 300


def recognise(source: Source) -> bool:
    """Return whether most keys are arguments of `vllm serve`, and one of them is an argument of no other program.

    A `null` would reach the command line as the word None, at which numbers and switches stop: a file with one is read
    by another program, which may have borrowed vLLM's names.
    """
    if source.suffix not in {".yaml", ".yml"}:
        return False
    try:
        roots = source.plain_yaml
    except (ValueError, RecursionError):
        return False
    return len(roots) == 1 and isinstance(roots[0].value, dict) and _is_flat_config(roots[0])


def _is_flat_config(root: Node) -> bool:
    names = [affirmed(canonical(key.partition(".")[0]))[0] for key, _ in root.items()]
    if not 0 < len(names) <= _MOST_KEYS or any(node.value is None for _, node in root.items()):
        return False
    known = _arguments()
    ours = [name for name in names if name in known]
    return len(ours) * 2 > len(names) and any(name not in _COMMON for name in ours)


def _arguments() -> frozenset[str]:
    """Names of engine and front-end arguments of the oldest and the newest release."""
    versions = known_versions()
    names = {name for version in (versions[0], versions[-1]) for name in Catalogue.at(version).cli.values()}
    return frozenset(names | set(SHORT.values()))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return the one engine that the file configures."""
    roots = source.plain_yaml
    if not roots or not isinstance(roots[0].value, dict):
        return ()
    root = roots[0]
    draft = Draft(NAME, source.path)
    reader = FlagReader(draft, vllm)
    take_config_file(reader, root)
    draft.not_seen.append("flags of the command that names this file: they win over it")
    write = yaml_writer(root, _speller(root, vllm), source.text)
    return (draft.done(model=reader.model, place=root.place, write=write),)


def _speller(root: Node, vllm: Version) -> Spell:
    """Dashes or underscores as the file has them; `no-x: true` for false, which every release understands."""
    underscored = any("_" in key for key, _ in root.items()) and not any("-" in key for key, _ in root.items())
    cli = Catalogue.at(vllm).cli

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        flag = f"no-{dashed(name)}" if value is False else dashed(name)
        if cli.get(flag) != name:
            return None
        key = flag.replace("-", "_") if underscored else flag
        return key, "true" if isinstance(value, bool) else scalar_text(value)

    return spell


DIALECT = Dialect(NAME, "vLLM server config file", 0, recognise, read)

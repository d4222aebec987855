"""The YAML file of `vllm serve --config`: a flat mapping of the server's own arguments.

What is written does not always arrive, as vLLM makes flags of it before argparse sees it: `false` is dropped up to
0.27.1; from 0.28.0 on it becomes `--no-<key>`, but only if the key is spelt with dashes as the flag is. Lists become
words from 0.10.2 on, mappings JSON from 0.16.0 on; before, both arrive as Python's text of them. Flags of the command
line win, and this file does not show them.
Source: vllm/utils.py:1458 of 0.8.5, vllm/utils/__init__.py:2019 of 0.10.2, and vllm/utils/argparse_utils.py:445 of
0.16.0, :525 of 0.28.0, :606 of 0.33.0.
"""

import json
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft
from rlaudit.configs.engine_arguments.flags import FlagReader
from rlaudit.configs.engine_names import SHORT, affirmed, canonical, dashed
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import Flag
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell, scalar_text
from rlaudit.configs.syntax.yaml_edits import yaml_writer
from rlaudit.settings.rollout_config import Loss, Origin, RolloutConfig, Setting
from rlaudit.text.did_you_mean import VERY_NEAR, nearest
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.lifetimes import names as flags
from rlaudit.vllm.milestones import CONFIG_FILE_LISTS, CONFIG_FILE_MAPPINGS, CONFIG_FILE_NEGATES

NAME = "vllm-config-file"
# Names that many other programs use too: a file with only these is not recognised as vLLM's.
_COMMON = {
    "model", "tokenizer", "dtype", "seed", "host", "port", "revision", "config", "load_format", "quantization", "name",
    "device", "download_dir", "api_key", "log_level", "task", "trust_remote_code", "root_path", "runner",
    "max_model_len",
}  # fmt: skip
_MOST_KEYS = 300


def recognise(source: Source) -> bool:
    """Return whether all keys are arguments of `vllm serve`, and one of them is an argument of no other program.

    Other servers share most of vLLM's names, and not all of them; a key that is one slip away from a name is a slip.
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
    # `tp` would become `--tp`, which no release of vLLM takes.
    heads = [key.partition(".")[0] for key, _ in root.items()]
    names = [head if head in SHORT else affirmed(canonical(head))[0] for head in heads]
    if not 0 < len(names) <= _MOST_KEYS or any(node.value is None for _, node in root.items()):
        return False
    known = {canonical(flag) for flag in flags("flag") if flag not in SHORT}
    ours = [name for name in names if name in known]
    slips = (name for name in names if name not in known and nearest(name, known, VERY_NEAR) is None)
    return any(name not in _COMMON for name in ours) and next(slips, None) is None


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return the one engine that the file configures."""
    roots = source.plain_yaml
    if not roots or not isinstance(roots[0].value, dict):
        return ()
    root = roots[0]
    draft = Draft(NAME, source.path)
    reader = FlagReader(draft, vllm)
    for key, node in root.items():
        _take(reader, key, node)
    reader.finish()
    draft.not_seen.append("flags of the command that names this file were not seen; they win over the file")
    write = yaml_writer(root, _speller(root, vllm), source.text)
    return (draft.done(model=reader.model, place=root.place, write=write),)


def _take(reader: FlagReader, key: str, node: Node) -> None:
    """Take a key of the file as the flag that vLLM makes of it."""
    if node.value is False:
        _false(reader, key, node)
    elif node.value is True:
        reader.take(_flag(key, node, None))
    elif isinstance(node.value, tuple):
        _list(reader, key, node)
    elif isinstance(node.value, dict):
        _mapping(reader, key, node)
    elif isinstance(node.value, Unknown):
        _unknown(reader, key, node, node.value.reason)
    elif isinstance(node.value, str) and "$" in node.value:
        _unknown(reader, key, node, f"{node.value} is filled in when the file is made")
    else:
        word = "None" if node.value is None else str(node.value)
        value = Node(word, node.place, node.key, node.text)
        reader.take(_flag(key, node, value))


def _false(reader: FlagReader, key: str, node: Node) -> None:
    name = affirmed(canonical(key))[0]
    if reader.vllm >= CONFIG_FILE_NEGATES and f"no-{key}" in reader.catalogue.cli:
        reader.take(Flag(f"no_{key.replace('-', '_')}", None, replace(node.place, setting=key)))
        return
    flag = reader.meaning(key.replace("-", "_"))
    if flag is not None and not flag.engine:
        return
    if reader.vllm < CONFIG_FILE_NEGATES:
        reason = f"vllm serve --config drops every false before 0.28.0; write no-{key.replace('_', '-')}: true"
    else:
        option = key.replace("_", "-")
        reason = (
            f"--config turns it into --no-{key}, a flag that vLLM lacks; write {option}: false or no-{option}: true"
        )
    reader.draft.lose(flag.name if flag is not None else name, node, Loss.FALSE_DROPPED, reason)


def _list(reader: FlagReader, key: str, node: Node) -> None:
    if not node.elements():
        reader.draft.lose(canonical(key), node, Loss.NOT_PASSED, "--config passes no flag for an empty list")
    elif reader.vllm < CONFIG_FILE_LISTS:
        _unknown(reader, key, node, f"before 0.10.2 a list arrives as one word, {str(node.plain())[:60]}")
    else:
        words = tuple(Node(_word(element), element.place, node.key, element.text) for element in node.elements())
        reader.take(_flag(key, node, words[0], words[1:]))


def _mapping(reader: FlagReader, key: str, node: Node) -> None:
    if reader.vllm < CONFIG_FILE_MAPPINGS:
        _unknown(reader, key, node, "before 0.16.0 --config passes a mapping as Python text, which is no JSON")
        return
    try:
        text = json.dumps(node.plain())
    except (TypeError, ValueError):
        _unknown(reader, key, node, "a part of the mapping is not known")
        return
    reader.take(_flag(key, node, Node(text, node.place, node.key, text)))


def _unknown(reader: FlagReader, key: str, node: Node, reason: str) -> None:
    """Set an unknown value; nothing for front-end arguments."""
    flag = reader.meaning(key.replace("-", "_").partition(".")[0])
    if flag is None:
        reader.draft.lose(canonical(key), node, Loss.REFUSED, "argparse error at start: no such flag")
    elif flag.engine:
        written: Any = node.text if isinstance(node.value, Unknown) else node.plain()
        reader.draft.engine[flag.name] = Setting(flag.name, Unknown(reason), written, Origin.FILE, node.place)


def _word(node: Node) -> Any:
    if isinstance(node.value, Unknown | str):
        return node.value
    return str(node.plain())


def _flag(key: str, node: Node, value: Node | None, more: tuple[Node, ...] = ()) -> Flag:
    return Flag(key.replace("-", "_"), value, replace(node.place, setting=key), more)


def _speller(root: Node, vllm: Version) -> Spell:
    """Return a spelling with dashes or underscores as in the file, for scalars."""
    underscored = any("_" in key for key, _ in root.items()) and not any("-" in key for key, _ in root.items())

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        # A program that makes words of this file without vLLM would pass a mapping as text that is no JSON.
        spelt = None if isinstance(value, dict | list) else spell_key(vllm, name, value)
        return (spelt[0].replace("-", "_"), spelt[1]) if spelt is not None and underscored else spelt

    return spell


def spell_key(vllm: Version, name: str, value: Any) -> tuple[str, str] | None:
    """Return the key and the value that set an argument, `no-x: true` for false; None if the file cannot hold it."""
    flag = f"no-{dashed(name)}" if value is False else dashed(name)
    passed = vllm >= (CONFIG_FILE_MAPPINGS if isinstance(value, dict) else CONFIG_FILE_LISTS)
    if Catalogue.at(vllm).cli.get(flag) != name or (isinstance(value, dict | list) and not passed):
        return None
    return flag, "true" if isinstance(value, bool) else scalar_text(value)


DIALECT = Dialect(NAME, "vLLM server config file", 0, recognise, read)

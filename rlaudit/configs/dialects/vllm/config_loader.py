"""What `vllm serve --config FILE` makes of a YAML file before argparse sees it, release by release.

`false` is dropped up to 0.27.1; from 0.28.0 it becomes `--no-<key>`, but only where the key is spelt with dashes as
the flag is. Lists become words from 0.10.2 on, mappings JSON from 0.16.0 on; before, both arrive as Python's text of
them. Source: vllm/utils.py:1458 of 0.8.5, vllm/utils/__init__.py:2019 of 0.10.2, and vllm/utils/argparse_utils.py:445
of 0.16.0, :525 of 0.28.0, :606 of 0.33.0.
"""

import json
from dataclasses import replace
from typing import Any

from rlaudit.configs.dialects.vllm.flags import FlagReader
from rlaudit.configs.engine_names import affirmed, canonical
from rlaudit.configs.rollout_config import Loss, Origin, Setting
from rlaudit.configs.syntax.flags import Flag
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.vllm.milestones import CONFIG_FILE_LISTS, CONFIG_FILE_MAPPINGS, CONFIG_FILE_NEGATES


def take_config_file(reader: FlagReader, mapping: Node) -> None:
    """Every key of the file, as the flags that it becomes."""
    for key, node in mapping.items():
        _take(reader, key, node)
    reader.finish()


def _take(reader: FlagReader, key: str, node: Node) -> None:
    if node.value is False:
        _false(reader, key, node)
    elif node.value is True:
        reader.take(Flag(key.replace("-", "_"), None, _named(node, key)))
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
        reader.take(Flag(key.replace("-", "_"), value, _named(node, key)))


def _false(reader: FlagReader, key: str, node: Node) -> None:
    name = affirmed(canonical(key))[0]
    if reader.vllm >= CONFIG_FILE_NEGATES and f"no-{key}" in reader.catalogue.cli:
        reader.take(Flag(f"no_{key.replace('-', '_')}", None, _named(node, key)))
        return
    known = reader.known(key.replace("-", "_"))
    if known is not None and not known.engine:
        return
    if reader.vllm < CONFIG_FILE_NEGATES:
        reason = f"vllm serve --config drops every false before 0.28.0; write no-{key.replace('_', '-')}: true"
    else:
        spelt = key.replace("_", "-")
        reason = f"--config makes --no-{key} of it, which is no flag; write {spelt}: false or no-{spelt}: true"
    reader.draft.lose(known.name if known is not None else name, node, Loss.FALSE_DROPPED, reason)


def _list(reader: FlagReader, key: str, node: Node) -> None:
    if not node.elements():
        reader.draft.lose(canonical(key), node, Loss.NOT_PASSED, "--config passes no flag for an empty list")
    elif reader.vllm < CONFIG_FILE_LISTS:
        _unknown(reader, key, node, f"before 0.10.2 a list arrives as one word, {str(node.plain())[:60]}")
    else:
        words = tuple(Node(_word(one), one.place, node.key, one.text) for one in node.elements())
        reader.take(Flag(key.replace("-", "_"), words[0], _named(node, key), words[1:]))


def _mapping(reader: FlagReader, key: str, node: Node) -> None:
    if reader.vllm < CONFIG_FILE_MAPPINGS:
        _unknown(reader, key, node, "before 0.16.0 --config passes a mapping as Python text, which is no JSON")
        return
    plain = node.plain()
    try:
        text = json.dumps(plain)
    except (TypeError, ValueError):
        _unknown(reader, key, node, "a part of the mapping is not known")
        return
    reader.take(Flag(key.replace("-", "_"), Node(text, node.place, node.key, text), _named(node, key)))


def _unknown(reader: FlagReader, key: str, node: Node, reason: str) -> None:
    """Set a value that is not known; nothing for front-end arguments."""
    known = reader.known(key.replace("-", "_").partition(".")[0])
    if known is None:
        reader.draft.lose(canonical(key), node, Loss.REFUSED, "argparse error at start: no such flag")
    elif known.engine:
        written: Any = node.text if isinstance(node.value, Unknown) else node.plain()
        reader.draft.engine[known.name] = Setting(known.name, Unknown(reason), written, Origin.FILE, node.place)


def _word(node: Node) -> Any:
    if isinstance(node.value, Unknown | str):
        return node.value
    return str(node.plain())


def _named(node: Node, key: str) -> Place:
    return replace(node.place, setting=key)

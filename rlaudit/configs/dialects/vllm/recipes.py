"""vLLM's recipe collection: YAML that builds `vllm serve` commands from lists of arguments.

A command is base_args, then the variant's extra_args, then the arguments of every feature that is not opt-in. What the
reader of the site chooses (strategy, hardware, opt-in features) is not in the file.
Source: vllm-project/recipes at 015a26c, CONTRIBUTING.md.
"""

import json
from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.vllm.flags import FlagReader, take_variables
from rlaudit.configs.dialects.vllm.server import flag_speller
from rlaudit.configs.draft import Draft
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.command_edits import list_writer
from rlaudit.configs.syntax.embedded import words_of
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.configs.syntax.spelling import Write
from rlaudit.configs.syntax.yaml_edits import yaml_writer
from rlaudit.vllm.catalogue import Catalogue


def is_recipe(source: Source) -> bool:
    """Whether `model.model_id`, `variants` and `features` or `compatible_strategies` are there."""
    if "model_id" not in source.text or "variants" not in source.text:
        return False
    return any(_recipe(root) for root in source.plain_yaml)


def _recipe(root: Node) -> bool:
    variants = root.get("variants")
    named = root.get("model", "model_id") is not None and variants is not None and isinstance(variants.value, dict)
    return named and (root.get("compatible_strategies") is not None or root.get("model", "base_args") is not None)


def recipe_configs(framework: str, source: Source, vllm: Version) -> Iterator[RolloutConfig]:
    """One config for every variant."""
    for root in source.plain_yaml:
        if _recipe(root):
            for _, variant in (root.get("variants") or root).items():  # noqa: PERF102 - Node.items(), not a dict
                yield _config(framework, source, root, variant, vllm)


def _config(framework: str, source: Source, root: Node, variant: Node, vllm: Version) -> RolloutConfig:
    draft = Draft(framework, source.path)
    reader = FlagReader(draft, vllm, serve=False)
    opt_in = root.get("opt_in_features")
    optional = {str(node.value) for node in opt_in.elements()} if opt_in is not None else set()
    parts = [root.get("model", "base_args"), variant.get("extra_args")]
    for shared in (root.get("model", "base_env"), variant.get("extra_env")):
        take_variables(draft, dict(shared.items()) if shared is not None else {})
    features = root.get("features")
    for feature, node in entries(features):
        if feature in optional:
            continue
        parts.append(node.get("args"))
        if node.get("modes") is not None:
            draft.not_seen.append(f"features.{feature}.modes: the user chooses one")
        environment = node.get("env")
        take_variables(draft, dict(environment.items()) if environment is not None else {})
    words = [word for part in parts if part is not None for word in words_of(part.elements())]
    reader.read(words)
    overrides = [key for key in ("hardware_overrides", "strategy_overrides") if _filled(root.get(key))]
    draft.not_seen += [
        f"{key}: the hardware and the strategy are chosen when the command is built" for key in overrides
    ]
    draft.not_seen.append("parallel sizes: the chosen strategy adds them")
    model = variant.get("model_id") or root.get("model", "model_id")
    return draft.done(model=model, place=variant.key or variant.place, write=_writer(root, source, vllm))


def _filled(node: Node | None) -> bool:
    return node is not None and isinstance(node.value, dict) and bool(node.value)


def _writer(root: Node, source: Source, vllm: Version) -> Write:
    """Writes words of base_args, which every variant gets."""
    flag = flag_speller(Catalogue.at(vllm).cli)
    model, base = root.get("model"), root.get("model", "base_args")
    if base is not None and base.elements():
        return list_writer(base.elements(), flag, source.text)

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        spelt = flag(name, value)
        return None if spelt is None else ("base_args", json.dumps([word for word in spelt if word]))

    return yaml_writer(model or root, spell, source.text)

"""What a flag's absence means to vLLM: `--enable-x` left out is not the same as `--no-enable-x`.

A serializer that skips every false value is harmless for an argument whose default is False, and says the opposite of
what is written where vLLM decides for True by itself.
"""

from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft, by_file
from rlaudit.configs.rollout_config import Loss, Setting
from rlaudit.configs.syntax.node import Node


def false_is_default(name: str, vllm: Version) -> bool:
    """Whether this release takes False where the flag is not given."""
    declared = _declared(name, vllm)
    return declared is not None and declared.default is False


def is_optional_bool(name: str, vllm: Version) -> bool:
    """Whether the argument is typed `bool | None`, so that vLLM may decide for True."""
    declared = _declared(name, vllm)
    kind = declared.kind.replace(" ", "") if declared is not None else ""
    return kind in {"bool|None", "Optional[bool]", "None|bool"}


def dropped(draft: Draft, name: str, node: Node, vllm: Version, reason: str) -> Setting:
    """The setting of a written `false` that is not handed on: open, so that vLLM's own decision holds."""
    if false_is_default(name, vllm):
        return by_file(name, node, note="not handed on, and False is what vLLM takes then")
    draft.lose(name, node, Loss.FALSE_DROPPED, reason)
    return by_file(name, node, value=None, note=reason)


def _declared(name: str, vllm: Version) -> Any:
    from rlaudit.vllm.catalogue import Catalogue

    return Catalogue.at(vllm).engine.get(name)

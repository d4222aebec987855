"""What a flag's absence means to vLLM: `--enable-x` left out is not the same as `--no-enable-x`.

A serializer that skips every false value is harmless for an argument whose default is False, and says the opposite of
what is written where vLLM decides for True by itself.
"""

from typing import Any

from packaging.version import Version


def false_is_default(name: str, vllm: Version) -> bool:
    """Return whether this release takes False if the flag is not given."""
    declared = _declared(name, vllm)
    return declared is not None and declared.default is False


def _declared(name: str, vllm: Version) -> Any:
    from rlaudit.vllm.catalogue import Catalogue

    return Catalogue.at(vllm).engine.get(name)

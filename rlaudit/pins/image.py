"""What a container image's tag says of vLLM: `vllm/vllm-openai:v0.18.1`, `verlai/verl:app-vllm0.11.0-mcore0.13`."""

import re
from collections.abc import Iterator

from rlaudit.pins.package import VLLM, Package
from rlaudit.pins.pin import Pin, line_at, release

_NUMBER = r"\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?"
# The image of vLLM itself, or a tag that names it; `vllm018` and `latest` name no release.
_TAGGED = re.compile(rf"vllm(?:(?:-[\w-]{{1,40}})?:v?(?P<own>{_NUMBER})|[-_]?v?(?P<named>{_NUMBER}))[\w.-]*")
_BEFORE = re.compile(r"[\w.:/-]*\Z")
LONGEST = 200  # characters of an image's name before the word


def images(text: str, package: Package = VLLM) -> Iterator[Pin]:
    """Every image with a release of vLLM in its name; tags tell of no other package.

    The release is found first and the name before it then: a name tried from every character takes too long.
    """
    for match in _TAGGED.finditer(text) if package is VLLM else ():
        name = _BEFORE.search(text[max(0, match.start() - LONGEST) : match.start()])
        before = name[0] if name else ""
        version = release(match["own"] or match["named"])
        is_image = before == "" or before.endswith("/") if match["own"] else ":" in before
        if is_image and version is not None:
            yield Pin(before + match[0], version, line_at(text, match.start()))

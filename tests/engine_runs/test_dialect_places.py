"""Each place that a dialect names is in a released package of its framework, else the dialect is out of date.

Packages are installed without what they need, below the cache. Frameworks that the index has not are not looked up.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from test_functions_of_frameworks import installed

from rlaudit.configs.dialects.framework_code import FrameworkCode
from rlaudit.configs.dialects.spec import shipped, spec_at
from rlaudit.configs.framework_source.checkout import Checkout

pytestmark = [pytest.mark.engine, pytest.mark.beside]

# Distribution and the releases that were read, the newest last.
PACKAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "areal": ("areal", ("1.0.4",)),
    "axolotl": ("axolotl", ("0.18.0",)),
    "ms_swift": ("ms-swift", ("3.4.1", "3.5.0", "3.8.0", "3.9.3", "3.10.3", "3.11.3", "3.12.6", "4.0.4", "4.6.0")),
    "molt": ("molt-rl", ("0.1.6", "0.2.1")),
    "openrlhf": ("openrlhf", ("0.8.6", "0.8.11", "0.9.9", "0.10.4", "0.11.2")),
    "rllm": ("verl", ("0.3.0.post1", "0.5.0", "0.6.1", "0.7.0", "0.9.0", "0.9.1")),
    "skyrl": ("skyrl", ("0.1.0", "0.3.0")),
    "trl": ("trl", ("0.17.0", "0.18.2", "0.19.1", "0.24.0", "0.26.2", "0.27.1", "1.6.0", "1.16.0")),
    "verl": ("verl", ("0.3.0.post1", "0.5.0", "0.6.1", "0.7.0", "0.9.0", "0.9.1")),
}
# Frameworks whose source is on GitHub alone.
NOT_ON_THE_INDEX = {"easyr1", "nemo_rl", "open_instruct", "pipelinerl", "prime_rl", "rlinf", "roll"}


def missing(name: str, folders: list[Path]) -> dict[str, Mapping[str, str]]:
    spec = spec_at(shipped()[name])
    package = spec.declared["package"]["folder"]
    code = [FrameworkCode(Checkout(str(folder), package, (str(folder),))) for folder in folders]
    return {setting: at for setting, at in spec.places if all(one.line_of(at) is None for one in code)}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_place_of_a_dialect_is_in_a_release_that_was_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    distribution, releases = PACKAGES[name]
    folders = [installed(distribution, release) for release in releases]
    moved = ", ".join(missing(name, folders[-1:]))
    with capsys.disabled():
        print(f"\n{name}: not in {distribution} {releases[-1]}, the newest that was read: {moved or 'nothing'}")
    assert missing(name, folders) == {}


def test_every_dialect_is_looked_up_or_its_framework_is_not_on_the_index() -> None:
    specs = {name: spec_at(path) for name, path in shipped().items()}
    # No copy is looked for if the dialect names no folder.
    with_places = {name for name, spec in specs.items() if spec.places and "folder" in spec.declared["package"]}
    assert with_places == {*PACKAGES, *NOT_ON_THE_INDEX}

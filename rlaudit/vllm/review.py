"""Which resolution rules were read against which code of vLLM, and which must be read again."""

import json
from collections.abc import Mapping
from functools import lru_cache

from packaging.version import Version

from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.facts import DATA

REVIEWED = DATA / "reviewed.json"


@lru_cache(maxsize=1)
def reviewed() -> dict[str, dict[str, str]]:
    """Return, for each rule, the fingerprints of the code that was read -> the first release that has it."""
    text = REVIEWED.read_text(encoding="utf-8") if REVIEWED.exists() else "{}"
    fingerprints: dict[str, dict[str, str]] = json.loads(text)
    return fingerprints


def unreviewed(release: Version | str | Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the rules whose deciding code in this release was not read yet.

    release: a version, or the fingerprints of one that is just being catalogued.
    """
    if isinstance(release, Mapping):
        fingerprints = dict(release)
    else:
        fingerprints = {name: resolver.fingerprint for name, resolver in Catalogue.at(release).resolvers.items()}
    return tuple(name for name, short in sorted(fingerprints.items()) if short not in reviewed().get(name, {}))

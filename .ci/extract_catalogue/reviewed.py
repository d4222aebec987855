"""Notes down which resolution rules were read against the code of a catalogued release."""

import json

from packaging.version import Version

from rlaudit.vllm import review
from rlaudit.vllm.catalogue import Catalogue


def record(version: Version | str, names: tuple[str, ...]) -> None:
    """Note that somebody has read the deciding code of these rules in a catalogued release."""
    known = {name: dict(found) for name, found in review.reviewed().items()}
    for name in names:
        known.setdefault(name, {}).setdefault(Catalogue.at(version).resolvers[name].fingerprint, str(version))
    rows = [f"{json.dumps(name)}:{json.dumps(found)}" for name, found in sorted(known.items())]
    review.REVIEWED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    review.reviewed.cache_clear()

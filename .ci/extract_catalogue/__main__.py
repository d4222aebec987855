"""Adds a vLLM release to the catalogue, of a checkout: `cd .ci && python -m extract_catalogue SOURCE [--version X]`.

What it names as "to review" are resolution rules whose deciding code changed in this release: read it with
`--show RULE`, correct rlaudit/vllm/resolution/RULE.py where needed, then record that with `--reviewed RULE`.

`--download VERSION` records the release's published wheels as well; `--builds` does so for every catalogued release.

What it names as moved are methods that the recorder hooks, and what it reads there. `--hooks` reads these again for
every catalogued release: after a change to what the recorder hooks. `--lines` reads anew at which lines values are
decided: after a change to `fingerprint.py` that leaves the fingerprints.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from packaging.version import Version

from extract_catalogue.archive import download, open_tree, version_of
from extract_catalogue.builds import record_builds
from extract_catalogue.decided_lines import record_published_lines
from extract_catalogue.fingerprint import decision
from extract_catalogue.hook_changes import changes
from extract_catalogue.hooks import record_hooks, record_published_hooks
from extract_catalogue.release import release
from extract_catalogue.reviewed import record
from extract_catalogue.table import write_release
from rlaudit.errors import RlauditError, UsageError
from rlaudit.recording.hook_points import read_hook_points
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.facts import DATA
from rlaudit.vllm.resolve import ResolutionRule, resolution_rules
from rlaudit.vllm.review import unreviewed


def main(arguments: list[str] | None = None) -> int:
    """Write each source into the catalogue and name the resolution rules that must be read again."""
    parser = argparse.ArgumentParser(prog="python -m extract_catalogue", description=__doc__)
    parser.add_argument("source", nargs="*", type=Path, help="folder that holds vllm/, wheel or sdist")
    parser.add_argument("--version", help="the release, where the source does not tell it")
    parser.add_argument("--download", metavar="VERSION", action="append", default=[], help="fetch it from the index")
    parser.add_argument("--builds", metavar="VERSION", nargs="*", help="record what the wheels on the index hold")
    parser.add_argument("--hooks", metavar="VERSION", nargs="*", help="record what the recorder hooks in them")
    parser.add_argument("--lines", metavar="VERSION", nargs="*", help="record where they decide their values")
    parser.add_argument("--show", metavar="RULE", help="print the deciding code of one rule instead")
    parser.add_argument("--reviewed", metavar="RULE", action="append", default=[], help="record that it was read")
    parser.add_argument("--into", type=Path, default=DATA, help="folder of the catalogue")
    given = parser.parse_args(arguments)
    if not given.source and not given.download and given.builds is given.hooks is given.lines is None:
        parser.error("name a source, or --download VERSION, or --builds, --hooks, --lines")
    if given.version and len(given.source) + len(given.download) > 1:
        parser.error("--version goes with one source")
    try:
        for source in given.source:
            if given.show:
                print(decision(open_tree(source), rule_named(given.show).functions))
                continue
            add(source, given.version, given.into)
            if given.reviewed:
                version = Version(given.version) if given.version else version_of(source, open_tree(source))
                record(version, tuple(rule_named(name).name for name in given.reviewed))
        for version in given.download:
            with tempfile.TemporaryDirectory() as folder:
                add(download(version, Path(folder)), given.version or version, given.into)
            record_builds([given.version or version], given.into)
        if given.builds is not None:
            record_builds(given.builds or [str(version) for version in known_versions()], given.into)
        if given.hooks is not None:
            record_published_hooks(given.hooks or [str(version) for version in known_versions()], given.into)
        if given.lines is not None:
            record_published_lines(given.lines or [str(version) for version in known_versions()], given.into)
    except RlauditError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def rule_named(name: str) -> ResolutionRule:
    """A resolution rule. Raises UsageError, listing the known ones, for any other name."""
    rules = resolution_rules()
    if name not in rules:
        raise UsageError(f"there is no resolution rule {name}", f"Known: {', '.join(rules)}.")
    return rules[name]


def add(source: Path, version: str | None, into: Path) -> None:
    """Catalogue one release."""
    tree = open_tree(source)
    named = Version(version) if version else version_of(source, tree)
    read = source.name if source.is_file() else f"vllm {named}"
    found = release(tree, read)
    write_release(str(named), read, found, into)
    record_hooks(named, tree, into)
    changed = unreviewed({name: short for name, (short, *_) in found["resolvers"].items()})
    review = f"to review: {', '.join(changed)}" if changed else "all resolution rules reviewed"
    print(f"vLLM {named}: {len(found['engine'])} engine arguments, {len(found['variables'])} variables; {review}")
    for line in changes(named, read_hook_points(into)):
        print(f"the recorder: {line}")


if __name__ == "__main__":
    sys.exit(main())

"""vLLM's flags that a program writes as a list and hands to vLLM's own parser: `parser.parse_args(["--seed", "0"])`.

What is added to the list under a condition is open: whether the condition holds is known when it runs. What the program
stores in the parsed arguments afterwards is its own to decide.
"""

from packaging.version import Version

from rlaudit.configs.dialects.vllm.flags import FlagReader
from rlaudit.configs.dialects.vllm.own_server import own_options, stores
from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.rollout_config import Origin, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import words_of
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_lists import GrownList
from rlaudit.vllm.lifetimes import flag_of_any_release

_PARSES = {"parse_args", "parse_known_args"}


def parsed_list(source: Source) -> GrownList | None:
    """The list; None where the program hands none, or several, to a parser."""
    if "parse_args(" not in source.text and "parse_known_args(" not in source.text:
        return None
    found = [one for one in source.grown_lists(_is_flag) if one.handed_to & _PARSES]
    return found[0] if len(found) == 1 else None


def _is_flag(text: str) -> bool:
    return text.startswith("--") and flag_of_any_release(text[2:].partition("=")[0].replace("_", "-")) is not None


def take_parsed_list(draft: Draft, listed: GrownList, source: Source, vllm: Version) -> Node | None:
    """Put the flags into a draft; returns the model."""
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.framework_source.bindings import nodes_in

    nodes = nodes_in(source)
    own = dict(own_options(nodes)) or None
    reader = FlagReader(draft, vllm, serve=False, own=own, lenient="parse_known_args" in listed.handed_to)
    reader.read(words_of(listed.words))
    take_maybe(draft, reader, listed.maybe)
    for name, line in stores(nodes):
        if name in reader.catalogue.engine:
            why = f"{shown(source.path)}:{line} decides it"
            draft.engine.by_code(name, Unknown(why), why)
    return reader.model


def take_maybe(draft: Draft, reader: FlagReader, groups: tuple[tuple[Node, ...], ...]) -> None:
    """Flags that are added under a condition: each is there or not."""
    for group in groups:
        inner = FlagReader(Draft(draft.framework, draft.path), reader.vllm, reader.serve, own=reader.own)
        inner.read(words_of(group))
        for name, one in inner.draft.engine.items():
            line = one.place.line if one.place is not None else 0
            why = f"line {line} adds it under a condition"
            draft.engine[name] = Setting(name, Unknown(why), one.written, Origin.FILE, one.place, why)
        draft.lost += inner.draft.lost
        draft.not_seen += inner.draft.not_seen

"""What is written and never arrives: the entries of `lost`, and fields that the framework no longer has."""

from rlaudit.configs.draft import known
from rlaudit.configs.rollout_config import Loss
from rlaudit.configs.syntax.node import entries
from rlaudit.dialects.clause import LOSSES, Said
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.span import written_fields
from rlaudit.vllm.catalogue import Catalogue


def lose(reading: Reading, said: Said) -> None:
    """Keep something that is written and never arrives."""
    if "others of" in said:
        _lose_others(reading, said)
        return
    node = reading.node(said["key"])
    truth = reading.holds(said.get("if"))
    if node is None or truth is False or ("unless" in said and known(node, said["unless"]) == said["unless"]):
        return
    name = said.get("name", said["key"].rpartition(".")[2].lstrip("@"))
    reading.draft.lose(name, node, LOSSES[said["as"]], reading.sentence(said), certain=truth is True)


def _lose_others(reading: Reading, said: Said) -> None:
    """Keep the keys of a mapping that neither the dialect nor the entry names."""
    truth = reading.holds(said.get("if"))
    if truth is False:
        return
    named = {*said.get("but", ()), *reading.spec.keys_below(said["others of"])}
    arguments = Catalogue.at(reading.vllm).engine if said.get("arguments") else None
    for key, node in entries(reading.node(said["others of"])):
        if key not in named and (arguments is None or key in arguments):
            reading.draft.lose(key, node, LOSSES[said["as"]], reading.sentence(said), certain=truth is True)


def take_span(reading: Reading) -> None:
    """Say which releases these are, and which written fields none of them has any more."""
    span, draft, said = reading.span, reading.draft, reading.spec.said.get("release", {})
    draft.releases, draft.refused_pin, shown = span.releases, span.refused, span.shown(reading.of)
    if span.is_empty:
        draft.not_seen.append(f"{shown}: what is said of the trainer is said of the later release")
    elif span.starts is not None:
        others = f"those from {span.starts} on run with this vLLM as well"
        draft.not_seen.append(f"the {reading.of} release: taken is {shown}; {others}")
    for name in written_fields(said, reading.holds, reading.is_written):
        field, node = said["fields"][name], reading.node(name)
        if node is not None and span.lacks(field):
            certain = span.lacks_for_certain(field)
            release = span.starts if certain and span.starts is not None else span.first
            who = f"{reading.of} {release} or later, which this vLLM needs," if span.is_empty else shown
            reason = f"{who} has no {name} any more, and its parser stops there"
            draft.lose(field.get("name", name), node, Loss.REFUSED, reason, certain=certain)

"""Which rules run: all of them, or those that names and layers choose."""

from collections.abc import Mapping, Sequence

from rlaudit.errors import UsageError
from rlaudit.inspection.suppression import RULES as ABOUT_SUPPRESSIONS
from rlaudit.layers import Layer
from rlaudit.rules.audit.rule import Rule
from rlaudit.text.did_you_mean import did_you_mean


def selected(
    rules: Mapping[str, Rule], select: Sequence[str], ignore: Sequence[str]
) -> tuple[dict[str, Rule], set[str]]:
    """Return the rules to run, and the names of the findings about suppressions to report.

    Raises UsageError for a name that is neither a rule nor a layer, with the nearest that is.
    """
    everything = {*rules, *ABOUT_SUPPRESSIONS}
    chosen = _chosen(rules, select) if select else everything
    chosen -= _chosen(rules, ignore)
    return {name: rule for name, rule in rules.items() if name in chosen}, chosen & set(ABOUT_SUPPRESSIONS)


def _chosen(rules: Mapping[str, Rule], words: Sequence[str]) -> set[str]:
    layers = {layer.value.replace(" ", "-"): layer for layer in Layer}
    names: set[str] = set()
    for word in (part.strip() for words_ in words for part in words_.split(",")):
        layer = layers.get(word.lower().replace(" ", "-"))
        if layer is not None:
            names |= {name for name, rule in rules.items() if rule.layer is layer}
        elif word in rules or word in ABOUT_SUPPRESSIONS:
            names.add(word)
        else:
            listed = f"rules: rlaudit list rules; layers: {', '.join(layers)}"
            hint = did_you_mean(word, [*rules, *layers, *ABOUT_SUPPRESSIONS], listed)
            raise UsageError(f"{word!r} is neither a rule nor a layer", hint)
    return names

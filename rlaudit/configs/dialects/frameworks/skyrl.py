"""What YAML cannot say of SkyRL: its own parser of overrides."""

from rlaudit.configs.dialects.reading import Reading
from rlaudit.settings.rollout_config import Loss


def refused_signs(reading: Reading) -> None:
    """Keep the overrides at which the newer layout's parser stops: it takes no `+` in front of a key."""
    from rlaudit.configs.syntax.flags import overrides

    if reading.tree.command is None or reading.layout.name == "older":
        return
    for flag in overrides(reading.tree.command.words):
        if flag.operator.startswith("+") and flag.value is not None:
            reason = f"SkyRL stops: it takes no `+` in front of {flag.name} (config.py, from_cli_overrides)"
            reading.draft.lose(flag.name.rpartition(".")[2], flag.value, Loss.REFUSED, reason)

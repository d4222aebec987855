"""What YAML cannot say of ms-swift: options that only look like its own."""

from rlaudit.dialects.reading import Reading


def unknown_options(reading: Reading) -> None:
    """Name the options with ms-swift's prefix that no setting took up: no release that was read has them."""
    draft = reading.draft
    taken = {one.place for settings in (draft.engine, draft.options) for one in settings.values()}
    taken |= {lost.place for lost in draft.lost}
    other = [
        name
        for name, node in reading.tree.root.items()
        if name.startswith("vllm_")
        and name != "vllm_engine_kwargs"
        and node.value is not None
        and node.place not in taken
    ]
    if other:
        draft.not_seen.append(f"{', '.join(other)}: no vLLM setting of the ms-swift releases read here")

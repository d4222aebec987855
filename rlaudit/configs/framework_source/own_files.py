"""Settings in config files of the framework's own package: defaults of the framework, not choices of the user."""

from rlaudit.configs.draft import Draft, by_code
from rlaudit.configs.framework_source.checkout import Checkout, shown


def take_own_files(draft: Draft, checkout: Checkout) -> None:
    """Take what stands in the package's own config files for a default, unless the config is one of them."""
    if checkout.has(draft.path):
        return
    draft.lost = [lost for lost in draft.lost if not checkout.has(lost.place.path)]
    for settings in (draft.engine, draft.sampling, draft.environment, draft.trainer, draft.options):
        for name, setting in settings.items():
            if setting.place is not None and checkout.has(setting.place.path):
                where = f"{shown(setting.place.path)}:{setting.place.line}"
                note = f"{setting.note}; {where}" if setting.note else where
                settings[name] = by_code(name, setting.value, note)
                draft.decided[name] = where

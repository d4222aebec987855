"""What of a project decides how chats become tokens: its release of transformers, and a line that renders."""

from dataclasses import dataclass

from packaging.version import Version

from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.inspection.versions import Versions, hints_for
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import FrameworkRelease
from rlaudit.vllm.pins.pin import Package

TRANSFORMERS = Package(("transformers",), ("huggingface/transformers",))
_RENDERS = "apply_chat_template"


@dataclass(frozen=True)
class PinnedBefore:
    """What the tree before a bump pins. None: no release of transformers, or several."""

    transformers: FrameworkRelease | None


def pinned_transformers(
    source: Source, versions: Versions, bumped: PinnedBefore | None = None
) -> tuple[FrameworkRelease | None, FrameworkRelease | None]:
    """Return the release of transformers before and after a move; None if nothing gives it.

    bumped: the pins of the tree before, whose files are not here. Without it, a project that pins the later vLLM has
    moved already, and its pins say nothing of the time before.
    """
    if isinstance(source, RecordedSource):
        return _recorded(source), None
    here = release_here(source, TRANSFORMERS, None)
    pin = FrameworkRelease(here.version, here.because) if here is not None else None
    if bumped is not None:
        return bumped.transformers, pin
    vllm = [hint.version for hint in hints_for(source.path, source.text).hints[:1]]
    return (None if versions.migrates and vllm == [versions.after] else pin), pin


def _recorded(source: RecordedSource) -> FrameworkRelease | None:
    releases = {process.versions.get("transformers") for process in source.recording.processes if process.engines}
    written = releases.pop() if len(releases) == 1 else None
    return FrameworkRelease(Version(written), "as recorded") if written is not None else None


def renders(source: Source) -> Place | None:
    """Return the first line of a program that takes token ids from a chat template and may get a dict."""
    try:
        calls = source.calls((_RENDERS,))
    except UnreadableText as error:
        source.refuse("chat templates", error)
        return None
    for call in calls:
        tokenize = call.arguments.get("tokenize")
        if not call.open and "return_dict" not in call.arguments and (tokenize is None or tokenize.value is True):
            return call.place
    return None

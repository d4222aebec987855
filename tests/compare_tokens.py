"""One table of tokens in memory, compared as the command compares a log of one part."""

from pathlib import Path

from rlaudit.diagnosis.compare import judged, worded
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.evidence import gather
from rlaudit.diagnosis.read_log import read_part, together
from rlaudit.tokens.fault import Faults

PATH = Path("tokens")


def compare(batches, sampling, trainer, settings=None, *, faults=None, sample=None, scored=None, before=None):
    """Compare one table. faults: broken sequences are added to them. sample: as of `read_part`."""
    settings, faults = settings or CompareSettings(), faults or Faults()
    log = together([read_part(batches, PATH, settings, Faults(), sample)], PATH, faults, settings)
    today = None if before is None else before.as_today
    return worded(judged(gather(log, sampling, trainer, settings, faults=faults, scored=scored, before=today)))

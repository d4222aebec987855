"""The tests that show which of report, sample and trainer agree: the modules of each, and the data it needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from rlaudit.layers import Layer
from rlaudit.meaning import broken_groups, from_siblings, report_fit, sample_fit, sharpness, siblings, token_tests


@dataclass(frozen=True)
class DocumentedTest:
    """A test."""

    # What has to be logged.
    needs: str
    # Their docstrings are its documentation, the derivation first.
    modules: tuple[ModuleType, ...]
    layer: Layer = Layer.SEMANTIC


ALL: Mapping[str, DocumentedTest] = {
    "sibling-agreement": DocumentedTest(
        "token ids and one logprob a token, two samples of a prompt at least", (siblings, from_siblings, broken_groups)
    ),
    "sharpness": DocumentedTest("trainer_entropy", (sharpness,)),
    "token-tests": DocumentedTest("the trainer's scores (--score MODEL, or ablate)", (token_tests,)),
    "report-fit": DocumentedTest("the trainer's scores (--score MODEL, or ablate)", (report_fit,)),
    "sample-fit": DocumentedTest("the trainer's scores (--score MODEL, or ablate)", (sample_fit,)),
}

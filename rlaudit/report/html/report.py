"""A document as a page: verdicts, pictures, what the command's own report holds, what was not seen."""

from types import ModuleType

from rlaudit.printable import printable
from rlaudit.report.html import ablation, comparison, inspection, planted, training, weight_updates
from rlaudit.report.html.figures import figures
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.page import page
from rlaudit.report.html.verdicts import verdicts
from rlaudit.report.report_format import Document

# Modules with title(), facts() and sections() of one command's document.
OWN: dict[str, ModuleType] = {
    "ablate": ablation,
    "compare": comparison,
    "diagnose": comparison,
    "curves": training,
    "inspect": inspection,
    "selftest": planted,
}


def report(document: Document) -> str:
    """The whole file."""
    document = printable(dict(document))
    own = weight_updates if "weight_updates" in document else OWN[document["command"]]
    told = [figures(document), own.sections(document)]
    if own in (inspection, planted):
        told.reverse()
    not_seen = inspection.not_seen(document) if own is inspection else document["not_seen"]
    sections = [
        verdicts(document),
        training.lead(document) if own is training else None,
        *(section for part in told for section in part),
        list_section("not-seen", "Not seen", not_seen),
    ]
    foot = f"Written by rlaudit {document['rlaudit']}, schema {document['schema']}; exit code {document['exit_code']}."
    return page(
        own.title(document), f"rlaudit {document['command']}", document.get("description", ""), own.facts(document),
        [section for section in sections if section is not None], foot,
    )  # fmt: skip

"""Every finding of a report in one list, for formats that know nothing but findings.

What an ablation measured is a finding too: a layer that mismatches or could not be judged. It has no place in a file.
"""

from collections.abc import Mapping
from typing import Any

from rlaudit.reports.report_format import Document

Statement = Mapping[str, Any]
NOWHERE = {"path": None, "line": None, "column": None, "setting": None}
_SEVERITIES = {"mismatch": "error", "inconclusive": "warning"}


def statements(document: Document) -> list[Statement]:
    """Findings, the suppressed ones too; and where there was a measurement, what it says of the layers."""
    found: list[Statement] = list(document["findings"])
    if document["command"] == "inspect":
        return found
    for layer in document["layers"]:
        if layer["verdict"] in _SEVERITIES:
            cause = f" ({layer['cause']})" if layer["cause"] else ""
            found.append(
                {
                    "rule": f"{layer['layer'].replace(' ', '-')}-layer",
                    "layer": layer["layer"],
                    "severity": _SEVERITIES[layer["verdict"]],
                    "message": f"{layer['layer']} layer: {layer['verdict']}{cause}: {layer['because']}",
                    "location": NOWHERE,
                    "fix": None,
                    "suppressed": None,
                }
            )
    return found


def counted(document: Document) -> list[Statement]:
    """Those that nobody suppressed."""
    return [one for one in statements(document) if one["suppressed"] is None]

import json

from simulated_audit import findings
from test_rule_documentation import EVERY_RULE, documentation

from rlaudit.rules.audit.rule import Rule


@EVERY_RULE
def test_a_fix_sets_what_the_documentation_tells_to_use_instead(rule: Rule) -> None:
    documented = documentation(rule)
    fixes = (finding.fix for finding in findings(rule, documented.reported) if finding.fix is not None)
    edits = (json.loads(edit.replacement) for fix in fixes for edit in fix.edits)
    written = {edit["name"]: edit["value"] for edit in edits}
    instead = documented.instead.get("engine") or {}
    for name in written.keys() & instead.keys():
        assert written[name] == instead[name], name

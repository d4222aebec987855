"""From a judgement to the report of its command: one file for each kind of report."""

"""How text is put out: what a terminal, a log or a report may show, and units, plurals and progress."""

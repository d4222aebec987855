"""Text out: what a terminal, a log or a report may show, and the words that go with numbers."""

"""Measures one vLLM release after the other; the reports of such runs are the data of `rlaudit explain VERSION`."""

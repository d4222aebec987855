"""Where a project pins vLLM: one file for each kind of file that can say which release is installed."""

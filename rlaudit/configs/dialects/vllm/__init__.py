"""Plain vLLM: its commands, its config files, its Python classes, and what a running server reports."""

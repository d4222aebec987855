"""Text and its places: YAML, TOML, shell and Python as nodes, and the edits that leave every other byte alone."""

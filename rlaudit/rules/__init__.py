"""One file per rule. Its docstring is its documentation; `RULE` binds its name, layer and check."""

"""Tables of a run's mismatch in the form that a project asks for in pull requests: a file each, which binds TABLE."""

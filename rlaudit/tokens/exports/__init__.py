"""One file per format that logged rollouts come in; each binds EXPORT."""

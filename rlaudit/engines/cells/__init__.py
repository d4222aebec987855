"""Cells: jobs, each in another interpreter, that are started, watched, ended and sealed."""

"""Frameworks as data: what each makes of its config, one YAML file per framework, and what reads these files.

A framework is a file of `frameworks/`; `explain dialects` documents what may stand in it (`spec.py`). Each fact names
the file and the words of the framework's source that decide it, so that its developers can check it and a program can
tell when it is out of date. What YAML cannot say is a hook: a function of a Python file of the same name beside it.

`front_ends.py` makes one tree of keys of a file, however it is written; `rollout.py` makes a config of the tree:
`reading.py` answers conditions and references, `settling.py` settles one setting from its clauses (`clause.py`).
"""

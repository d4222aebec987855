"""What a framework's own source says, where it lies around a config or was named: the line decides, and no table.

`checkout.py` finds the package, `bindings.py` and `questions.py` read it with `ast` (nothing of it is imported or run),
`tell.py` puts the answers in place of what a dialect assumes of releases. A dialect says in its `source.py`, once, in
which files and for which names to look.
"""

"""From measurements to the three layers, in order, and to the sentences in which the first screen answers a move.

`answer.py` and `move.py` say what a move changes. The layers are judged in `semantic.py`, `inference_path.py` and
`objective.py`; a cause of a mismatch is named in `rlaudit/causes`.
"""

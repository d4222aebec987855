"""Families of simulated models: thresholds may be tuned on `development`, and are judged on `held_out`.

To add one, imitate `development.py`: bind GENERATOR, with the shapes of its distributions, its lengths and its noise.
`pytest tests/worlds` plants every cause in it; nothing else moves. It must differ from
the other two in whatever a threshold could lean on.
"""

"""A run that is still going on, held against gates after every step.

A gate is one metric and its limit (`gate.py`); what a step is, the log or the folder of dumps says (`growing_log.py`,
`growing_dumps.py`); the test is `statistics/exceedance.py`.
"""

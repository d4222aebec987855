"""What Markdown begins with, one file for each kind of report that is pasted into pull requests.

To add one, imitate `learned_gates.py`: bind BLOCK, a function of the report; the file has the name of the outline. A
block judges nothing: it takes what the report has, the gravest first, and `verdict_block.py` keeps it below a screen.
"""

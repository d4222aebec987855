"""What a report is: its parts are the records of the rooms that judge, its schema is made from them.

A file of_... makes the report of one kind of judgement; those of `inspect` and `ablate` are made in their packages.
"""

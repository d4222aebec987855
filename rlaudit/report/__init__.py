"""What a report is: its parts are the records of the rooms that judge, its schema is made from them.

A file of_... makes the report of one kind of judgement; `rendering/` makes what people read and machines parse.
"""

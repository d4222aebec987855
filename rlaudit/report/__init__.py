"""What a report is: its parts are the records of the rooms that judge, its schema is made from them."""

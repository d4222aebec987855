"""Which causes do these tokens show, and how much stays unexplained?"""

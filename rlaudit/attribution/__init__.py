"""Which causes do these tokens convict, and how much stays unexplained?"""

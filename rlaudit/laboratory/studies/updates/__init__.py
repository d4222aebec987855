"""In-flight weight updates: does the engine serve the weights that the trainer thinks it serves?"""

"""What `import weirlab` offers to notebooks and programs: the words of the command line as functions, each
with a result that shows itself. The commands call the same functions.

Importing this package imports nothing: `weirlab` loads each function from its module when it is first used.
"""

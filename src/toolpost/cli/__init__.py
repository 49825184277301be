"""The command line: results on standard output, talk on standard error, one file per command.

The only room that knows typer, rich and the terminal. Starting it imports typer and little else; what a
command needs is imported when it runs.
"""

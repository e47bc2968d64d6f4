"""Words of program code that prose hardly uses, by which a corpus of code is recognised.

A chunk of code has two or more of them on average: Python functions 2.1, JavaScript 1.9, C++ 2.8, C 3.0. A chunk of
prose has .0, contracts have .1 ("void").
"""

__all__ = ["PROGRAM_WORDS"]

_TEXT = """
args argv bool boolean const def dict elif enum func int kwargs len nil null obj param params printf println ptr repr
self str stdout struct tuple typeof uint undefined var void
"""
PROGRAM_WORDS = tuple(_TEXT.split())

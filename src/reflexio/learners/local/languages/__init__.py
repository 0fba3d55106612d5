"""The rules for languages besides English: one engine, and a file of cues for each language.

What is learned keeps the user's own words, in a short frame of the same language where they speak of themselves.
"""

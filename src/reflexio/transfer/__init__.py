"""Export and import: all rows of an organisation, page by page, and what other systems and skills hold.

`export.py` and `importing.py` work on stores; `client/transfer.py` makes one file of the pages. `mem0.py`, `zep.py` and
`skills.py` translate documents of others into requests of ours.
"""

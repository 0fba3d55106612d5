"""The learner that needs no model: rules over what users say, and an embedder where meaning decides.

`learner` is the entry. Word lists, stems and contradictions are in `reflexio.language`.
"""

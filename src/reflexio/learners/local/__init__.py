"""The learner that needs no model: rules over what users say, and an embedder where meaning decides.

`learner` is the entry; `cues.toml`, `corrections.toml` and `spelling.toml` hold the words that the rules look for.
Stems and contradictions are in `reflexio.language`.
"""

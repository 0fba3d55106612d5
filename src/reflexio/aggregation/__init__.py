"""What many users taught becomes agent playbooks: pool, cluster, contradiction, summarise, review.

New agent playbooks are pending until a person approves them. Better wording for them is searched in `optimisation`.
"""

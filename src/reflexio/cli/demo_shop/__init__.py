"""The demo data set: four weeks of a shop chain's conversations, and what is learned from them, made from a seed.

`conversations` writes the conversations, `fill` plays them through the services with a clock set to the past,
`review` plays the reviewers, and `optimise` plays the assistant and the judge of the optimiser. Nothing calls a model.
"""

"""Models, embedders and assistants of other parties, behind our ports, each with a scripted twin.

`resolve` of each kind turns a name or a configuration into an implementation. What is asked of them lives elsewhere.
"""

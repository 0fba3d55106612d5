"""Ready-made evaluators: checks, unit tests, a model as a judge, and combinations of them. Any callable of an output
(and of the attempt, if it has such a parameter) is an evaluator, too; `evaluation.py` turns its answer into a value.
"""

"""What the features need from outside, as Protocols named after the need.

The implementations live in `storage`, `providers`, `learners` and `engine`; `ports` imports none of them.
"""

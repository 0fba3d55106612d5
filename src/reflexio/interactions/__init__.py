"""Published conversations: publish, browse, and erase them with all that belongs to a user.

Publishing marks a user as having unlearned turns; what is learned from them is decided in `learning`.
"""

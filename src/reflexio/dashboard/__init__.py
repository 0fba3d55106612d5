"""The dashboard: server-rendered pages over the services. No build step, and nothing is loaded from elsewhere.

`routing` declares pages, `visit` is one request for one, `rendering` fills templates, `pages/` has one module a topic.
"""

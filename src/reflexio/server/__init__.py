"""The HTTP server: the application, its request gate, authentication, the table of errors, and the routes.

A route parses and answers; what it does is decided in the features. `run` serves the application in this process,
`process` in one of its own.
"""

"""The documentation is tested as code: examples run, names exist, and nothing that exists goes unnamed."""

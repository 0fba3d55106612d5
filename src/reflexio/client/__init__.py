"""The SDK: publishing, searching and managing over HTTP.

The methods are in `aio`, and `sync` is generated from it. The keywords of the methods are in `fields`, generated from
the request models in `reflexio.models`. No learning decision and no storage lives here.
"""

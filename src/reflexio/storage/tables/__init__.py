"""The statements of each area: one class for each protocol of `reflexio.ports.storage`.

They run in a transaction that the caller has begun. Connections and commits are left to `reflexio.storage.sqlite`.
"""

"""What every background feature shares: operations with progress and cancellation, retries, budgets, task loops.

A job here has no subject: what is learned, aggregated or optimised is decided in the features above.
"""

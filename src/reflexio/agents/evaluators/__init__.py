"""Ready evaluators. Any callable of an output, and of the attempt if it wants to see that, is one."""

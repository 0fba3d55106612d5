"""One verb a file; verbs speak to ports, never to a backend."""

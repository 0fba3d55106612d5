"""The MCP server: what a model inside another tool may ask Reflexio for, over a client.

`tools` and `review_tools` are what it can call, `resources` what it can read, `prompts` what a person can start.
Nothing here imports the SDK before a session begins.
"""

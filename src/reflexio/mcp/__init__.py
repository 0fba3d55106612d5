"""The MCP server. Empty until the first tool moves in."""

"""The SDK: publish, search and manage over HTTP, or in process."""

"""The assistants that playbooks are tried with: behind a webhook, or a script on this machine."""

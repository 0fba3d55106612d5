"""The search for better wording of a playbook, against the real assistant: which windows, what happened, who won."""

"""Optimisation: a GEPA search for a better wording of a playbook, tried against the real assistant.

Here live the service, the scheduler, the worker and every decision of a search. The assistant and the critic are
handed in; approval of the result belongs to the review of agent playbooks.
"""

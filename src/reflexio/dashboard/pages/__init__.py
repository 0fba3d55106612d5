"""The pages, one module a topic. A page reads through the services of the features and fills a template."""

from reflexio.dashboard.pages import access, conversations, learning, learnings, overview

PAGES = (access.pages, overview.pages, conversations.pages, learnings.pages, learning.pages)

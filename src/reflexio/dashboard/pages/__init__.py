"""The pages, one module a topic. A page reads through the services of the features and fills a template."""

from reflexio.dashboard.pages import (
    access,
    conversations,
    keys,
    learning,
    learnings,
    operations,
    optimisations,
    overview,
    playground,
    review,
    settings,
    status,
    versions,
)

PAGES = (
    access.pages,
    overview.pages,
    conversations.pages,
    learnings.pages,
    learning.pages,
    review.pages,
    playground.pages,
    optimisations.pages,
    versions.pages,
    operations.pages,
    keys.pages,
    settings.pages,
    status.pages,
)

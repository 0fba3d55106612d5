"""Run by Alembic, on the connection that `reflexio.storage.migrate` hands over with its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()

"""Tables are there when they are needed, whatever became of the transaction that made them."""

from contextlib import suppress

from sqlalchemy import Engine, text

from llama_index.ragkit.sql import writing
from llama_index.ragkit.sql.engine import transaction
from llama_index.ragkit.sql.tables import Tables


class StoppedError(Exception):
    pass


def test_tables_that_were_rolled_back_are_made_again(engine: Engine) -> None:
    tables = Tables("CREATE TABLE IF NOT EXISTS counters (n INTEGER)")
    with suppress(StoppedError), transaction(engine):
        tables.make(engine)
        tables.make(engine)  # they are there, as this transaction sees it
        raise StoppedError
    tables.make(engine)
    with writing(engine) as connection:
        connection.execute(text("INSERT INTO counters VALUES (1)"))

"""The other side of `items_are_found_by_meaning_where_the_server_can.rs`: LangGraph's own PostgresStore.

    meaning.py URL    puts an item and prints key and score of what a search for "0 2" gives
"""

import json
import sys

from langgraph.store.postgres import PostgresStore


def embed(texts):
    return [[float(number) for number in text.split(" ")] for text in texts]


def main():
    index = {"dims": 2, "embed": embed, "fields": ["at"], "distance_type": "cosine"}
    with PostgresStore.from_conn_string(sys.argv[1], index=index) as store:
        store.setup()
        store.put(("n",), "south", {"at": "0 -1"})
        found = store.search(("n",), query="0 2")
        print(json.dumps([[item.key, item.score] for item in found]))


main()

"""The other side of `python_and_rust_read_each_others_stores.rs`: LangGraph's own SqliteStore.

    store.py write FILE    puts items, with vectors of two numbers where the interpreter can load extensions
    store.py dump FILE     prints everything the store finds
"""

import json
import sqlite3
import sys

from langgraph.store.sqlite import SqliteStore

ITEMS = [
    (("users", "ann"), "likes", {"n": 1, "text": "Zoë 🦀", "list": [1, 2.5, None]}),
    (("users", "bob"), "likes", {"n": 50, "o": {"x": True}}),
    (("users",), "count", {"n": 100}),
]


def main(task, file):
    conn = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    store = SqliteStore(conn)
    store.setup()
    if task == "write":
        for namespace, key, value in ITEMS:
            store.put(namespace, key, value)
        store.put(("users",), "short", {"n": 0}, ttl=5)
    found = []
    for item in store.search((), limit=1000, refresh_ttl=False):
        found.append([list(item.namespace), item.key, item.value])
    more = store.search(("users",), filter={"n": {"$gt": 10}}, refresh_ttl=False)
    spaces = [list(ns) for ns in store.list_namespaces()]
    answer = {"items": sorted(found, key=json.dumps), "more": len(more), "spaces": sorted(spaces)}
    print(json.dumps(answer))


main(*sys.argv[1:])

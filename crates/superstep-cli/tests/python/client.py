"""Drives a server with the stock Python client, on the graphs of the demo. Prints one line for each thing that was shown."""

import asyncio
import sys
import uuid

import httpx
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

URL = sys.argv[1]
shown = 0


def show(what, condition, *rest):
    global shown
    if not condition:
        print("FAILED:", what, *rest, flush=True)
        sys.exit(1)
    shown += 1


async def events(stream):
    return [(part.event, part.data) async for part in stream]


async def refused(error, call):
    try:
        await call
    except error:
        return True
    return False


async def assistants(client):
    found = await client.assistants.search(limit=100)
    show("a default assistant for each graph", {a["graph_id"] for a in found} >= {"counter", "chat", "nested"})
    counter = next(a for a in found if a["graph_id"] == "counter")
    show("its id is stable", counter["assistant_id"] == "09d6caf4-2ef3-5a8b-b1a7-114690ed5d45")
    made = await client.assistants.create("configured", context={"model_name": "m1"}, name="mine")
    show("an assistant has a context", made["config"]["configurable"] == {"model_name": "m1"})
    changed = await client.assistants.update(made["assistant_id"], context={"model_name": "m2"})
    show("a change is a version", changed["version"] == 2)
    result = await client.runs.wait(None, made["assistant_id"], input={"question": "?"})
    show("a run uses the context of its assistant", result["answer"] == "m2/0.0", result)
    result = await client.runs.wait(None, made["assistant_id"], input={}, context={"temperature": 0.5})
    show("a run adds to it", result["answer"] == "m2/0.5", result)
    back = await client.assistants.set_latest(made["assistant_id"], 1)
    show("an older version is used again", back["context"] == {"model_name": "m1"})
    versions = await client.assistants.get_versions(made["assistant_id"])
    show("versions are listed", [v["version"] for v in versions] == [2, 1])
    schemas = await client.assistants.get_schemas(made["assistant_id"])
    show("schemas", schemas["context_schema"]["properties"]["model_name"]["type"] == "string")
    graph = await client.assistants.get_graph("nested", xray=True)
    show("a drawing unfolds", any(n["id"] == "child:child_ask" for n in graph["nodes"]))
    await client.assistants.delete(made["assistant_id"])
    show("a deleted one is missing", await refused(NotFoundError, client.assistants.get(made["assistant_id"])))


async def threads(client):
    user = str(uuid.uuid4())
    thread = await client.threads.create(metadata={"user": user, "deep": {"a": 1, "b": 2}})
    id = thread["thread_id"]
    show("a new thread is idle", thread["status"] == "idle" and thread["values"] is None)
    show("an id is taken once", await refused(ConflictError, client.threads.create(thread_id=id)))
    same = await client.threads.create(thread_id=id, if_exists="do_nothing")
    show("unless nothing is to be done", same["thread_id"] == id)
    await client.threads.update(id, metadata={"k": 2})
    found = await client.threads.search(metadata={"deep": {"b": 2}, "k": 2, "user": user})
    show("a thread is found by what it contains", [t["thread_id"] for t in found] == [id])
    show("and counted", await client.threads.count(metadata={"user": user}) == 1)
    show("no thread", await refused(NotFoundError, client.threads.get("00000000-0000-0000-0000-000000000000")))
    show("no id", await refused(UnprocessableEntityError, client.threads.get("abc")))
    state = await client.threads.get_state(id)
    show("a thread that has not begun", state["checkpoint"] is None and state["values"] == {})
    await client.runs.wait(id, "counter", input={"count": 10, "log": ["in"]})
    copy = await client.threads.copy(id)
    state = await client.threads.get_state(copy["thread_id"])
    show("a copy has the state", state["values"]["count"] == 13, state)
    await client.threads.delete(id)
    show("a deleted thread is missing", await refused(NotFoundError, client.threads.get_state(id)))
    state = await client.threads.get_state(copy["thread_id"])
    show("the copy is not", state["values"]["count"] == 13)


async def runs(client):
    id = (await client.threads.create())["thread_id"]
    seen = await events(client.runs.stream(id, "counter", input={"count": 1}, stream_mode=["values", "updates"]))
    show("a stream begins with its run", seen[0][0] == "metadata" and seen[0][1]["attempt"] == 1)
    show("and has every step", [e for e, _ in seen[1:]] == ["values"] + ["updates", "values"] * 3, seen)
    run = await client.runs.create(id, "counter", input={"count": 1})
    result = await client.runs.join(id, run["run_id"])
    show("a run goes on from the one before", result["count"] == 8, result)
    listed = await client.runs.list(id)
    show("runs are listed, the newest first", listed[0]["run_id"] == run["run_id"] and len(listed) == 2)
    show("a run that ended is a success", listed[0]["status"] == "success")
    batch = await client.runs.create_batch([{"assistant_id": "counter", "input": {}}, {"assistant_id": "slow", "input": {}}])
    show("a batch", len(batch) == 2)
    failed = await client.runs.wait(id, "failing", input={}, raise_error=False)
    show("a failed run says why", failed["__error__"] == {"error": "ValueError", "message": "boom happened"}, failed)
    seen = await events(client.runs.stream(None, "failing", input={}))
    show("so does its stream", seen[-1] == ("error", {"error": "ValueError", "message": "boom happened"}), seen)
    show("no graph", await refused(UnprocessableEntityError, client.runs.create(id, "nope")))
    seen = await events(client.runs.stream(None, "progress", input={"n": 2}, stream_mode="custom"))
    show("custom events", [d for e, d in seen if e == "custom"] == [{"progress": 1, "of": 2}, {"progress": 2, "of": 2}])
    seen = await events(client.runs.stream(None, "chat", input={"messages": "hi there"}, stream_mode="messages-tuple"))
    tokens = [d[0]["content"] for e, d in seen if e == "messages"]
    show("tokens", tokens == ["You", " said:", " hi", " there", ""], tokens)


async def questions(client):
    id = (await client.threads.create())["thread_id"]
    result = await client.runs.wait(id, "approval", input={"topic": "cats"})
    show("a question ends the run", result["__interrupt__"][0]["value"]["question"] == "approve?", result)
    thread = await client.threads.get(id)
    show("and interrupts the thread", thread["status"] == "interrupted" and len(thread["interrupts"]) == 1)
    result = await client.runs.wait(id, "approval", command={"resume": "yes"})
    show("an answer goes on", result["log"] == ["write", "review", "publish:yes"], result)
    thread = await client.threads.get(id)
    show("and the thread rests", thread["status"] == "idle" and thread["interrupts"] == {})
    id = (await client.threads.create())["thread_id"]
    result = await client.runs.wait(id, "parallel", input={})
    a, b = sorted(result["__interrupt__"], key=lambda i: i["value"]["ask"])
    result = await client.runs.wait(id, "parallel", command={"resume": {b["id"]: "B"}})
    show("one of two answers leaves the other open", [i["id"] for i in result["__interrupt__"]] == [a["id"]], result)
    result = await client.runs.wait(id, "parallel", command={"resume": {a["id"]: "A"}})
    show("then it is answered too", result["merged"] == "a=A|b=B", result)
    id = (await client.threads.create())["thread_id"]
    await client.runs.wait(id, "nested", input={"topic": "deep"})
    state = await client.threads.get_state(id, subgraphs=True)
    show("the state of a graph inside", state["tasks"][0]["state"]["values"]["child_log"] == ["child_prepare"])
    result = await client.runs.wait(id, "nested", command={"resume": "fine"})
    show("a question inside is answered", result == {"topic": "deep", "note": "fine", "log": ["before", "after:fine"]}, result)


async def travel(client):
    id = (await client.threads.create())["thread_id"]
    await client.runs.wait(id, "counter", input={"count": 10, "log": ["in"]})
    history = await client.threads.get_history(id)
    show("a history, the newest first", [s["metadata"]["step"] for s in history] == [3, 2, 1, 0, -1])
    before_b = next(s for s in history if s["next"] == ["b"])
    older = await client.threads.get_history(id, before=before_b["checkpoint"])
    show("what is older", [s["metadata"]["step"] for s in older] == [0, -1], older)
    state = await client.threads.get_state(id, checkpoint_id=before_b["checkpoint_id"])
    show("a state by its id", state["values"]["count"] == 11)
    forked = await client.threads.update_state(
        id, {"count": 100, "log": ["forked"]}, checkpoint=before_b["checkpoint"], as_node="a"
    )
    show("a fork", forked["checkpoint"]["checkpoint_id"] != before_b["checkpoint_id"])
    result = await client.runs.wait(id, "counter", input=None)
    show("a run goes on from it", result == {"count": 113, "log": ["in", "a", "forked", "b", "c"]}, result)
    result = await client.runs.wait(id, "counter", input={"count": 0}, interrupt_before=["b"])
    show("a breakpoint", (await client.threads.get_state(id))["next"] == ["b"])


async def in_progress(client):
    id = (await client.threads.create())["thread_id"]
    slow = {"ticks": 1000, "delay": 0.01}
    run = await client.runs.create(id, "slow", input=slow)
    show("a run makes its thread busy", (await client.threads.get(id))["status"] == "busy")
    show("another is refused", await refused(ConflictError, client.runs.create(id, "slow", multitask_strategy="reject")))
    show("so is a change of the state", await refused(ConflictError, client.threads.update_state(id, {"done": 1})))
    second = await client.runs.create(id, "counter", input={"count": 1})
    show("another waits", (await client.runs.get(id, second["run_id"]))["status"] == "pending")
    await client.runs.cancel(id, run["run_id"], wait=True)
    show("a cancelled run is interrupted", (await client.runs.get(id, run["run_id"]))["status"] == "interrupted")
    await client.runs.join(id, second["run_id"])
    show("then the other runs", (await client.runs.get(id, second["run_id"]))["status"] == "success")
    show("nothing to cancel", await refused(NotFoundError, client.runs.cancel(id, run["run_id"])))

    id = (await client.threads.create())["thread_id"]
    await client.runs.wait(id, "slow", input={"ticks": 1, "delay": 0})
    run = await client.runs.create(id, "slow", input=slow)
    result = await client.runs.wait(id, "slow", input={"ticks": 2, "delay": 0}, multitask_strategy="rollback")
    show("a run that is rolled back has never been", result["done"] == 2, result)
    show("it is missing", await refused(NotFoundError, client.runs.get(id, run["run_id"])))


async def resumable(client):
    id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(
        id, "counter", input={"count": 1}, stream_mode=["updates"], stream_resumable=True
    )
    await client.runs.join(id, run["run_id"])
    seen = [p async for p in client.runs.join_stream(id, run["run_id"], last_event_id="-1")]
    show("a stream is had again", [p.event for p in seen] == ["metadata", "updates", "updates", "updates"], seen)
    rest = [p async for p in client.runs.join_stream(id, run["run_id"], last_event_id=seen[1].id)]
    show("or the rest of it", [p.data for p in rest] == [p.data for p in seen[2:]], rest)
    show("ids are not repeated", len({p.id for p in seen}) == len(seen))
    show("no run", await refused(httpx.HTTPStatusError, client.runs.join(id, "00000000-0000-0000-0000-000000000000")))


async def items(client):
    await client.store.put_item(["docs", "user"], key="k1", value={"x": 1})
    await client.store.put_item(["docs", "user"], key="k2", value={"x": 2})
    show("an item", (await client.store.get_item(["docs", "user"], key="k1"))["value"] == {"x": 1})
    found = await client.store.search_items(["docs"], filter={"x": {"$gt": 1}})
    show("items are searched", [i["key"] for i in found["items"]] == ["k2"])
    spaces = await client.store.list_namespaces(prefix=["docs"])
    show("namespaces", spaces["namespaces"] == [["docs", "user"]])
    await client.store.delete_item(["docs", "user"], key="k1")
    show("a missing item is nothing", await client.store.get_item(["docs", "user"], key="k1") is None)
    result = await client.runs.wait(None, "memory", input={"note": "milk"})
    show("graphs see the same store", "milk" in result["seen"], result)
    show("as clients do", (await client.store.get_item(["notes", "demo"], key="milk"))["value"] == {"text": "milk"})


async def remote():
    graph = RemoteGraph("counter", url=URL)
    show("a remote graph", (await graph.ainvoke({"count": 1}))["count"] == 4)
    client = get_client(url=URL)
    config = {"configurable": {"thread_id": (await client.threads.create())["thread_id"]}}
    approval = RemoteGraph("approval", url=URL)
    updates = [chunk async for chunk in approval.astream({"topic": "x"}, config, stream_mode="updates")]
    show("its updates", "write" in updates[0], updates)
    state = await approval.aget_state(config)
    show("its state", state.next == ("review",))
    drawn = await approval.aget_graph()
    show("its drawing", set(drawn.nodes) == {"__start__", "write", "review", "publish", "discard", "__end__"})


async def main():
    client = get_client(url=URL)
    for part in (assistants, threads, runs, questions, travel, in_progress, resumable, items):
        await part(client)
    await remote()
    print(f"{shown} shown")


asyncio.run(main())

"""The workloads of `superstep-bench` for LangGraph, in the same shapes.

Reads one JSON request a line and answers with one line each:

    {"workload": "loop", "size": 1000, "checkpointer": "memory", "durability": "sync", "rounds": 2}
    {"nanos": [183000000, 181000000], "units": 1002}
"""

import argparse
import json
import operator
import os
import sqlite3
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, TypedDict

# No tracing, whatever is set where this runs.
for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"):
    os.environ[name] = "false"

from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.checkpoint.postgres import PostgresSaver  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command, Send, interrupt  # noqa: E402
from psycopg.rows import dict_row  # noqa: E402
from psycopg_pool import ConnectionPool  # noqa: E402

STEPS_MAX = 1_000_000


class Setting:
    """Where a workload runs: its checkpointer, and how it is called."""

    def __init__(self, places, request, stack):
        self.rounds = request["rounds"]
        self.durability = request["durability"]
        self.threads = 0
        self.saver = open_saver(places, request["checkpointer"], stack)
        if request["checkpointer"] in ("sqlite", "postgres"):
            # Not measured, so that connections are open and statements prepared.
            self.invoke(circle(3, self.saver), {"n": 0})

    def config(self):
        """How a call on a new thread is made."""
        self.threads += 1
        config = {"recursion_limit": STEPS_MAX}
        if self.saver is not None:
            config["configurable"] = {"thread_id": f"thread-{self.threads:08}"}
        return config

    def options(self):
        return {} if self.saver is None else {"durability": self.durability}

    def invoke(self, graph, value, config=None):
        return graph.invoke(value, config or self.config(), **self.options())

    def repeat(self, units, run):
        """Runs something once a round; it says itself how long it took."""
        return {"nanos": [run() for _ in range(self.rounds)], "units": units}


def open_saver(places, kind, stack):
    if kind == "none":
        return None
    if kind == "memory":
        return InMemorySaver()
    if kind == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(f"{places.dir}/theirs.db{suffix}").unlink(missing_ok=True)
        connection = sqlite3.connect(f"{places.dir}/theirs.db", check_same_thread=False)
        stack.callback(connection.close)
        saver = SqliteSaver(connection)
        saver.setup()
        return saver
    if kind == "postgres":
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool = ConnectionPool(places.postgres, min_size=10, max_size=10, kwargs=options)
        stack.enter_context(pool)
        pool.wait()
        saver = PostgresSaver(pool)
        saver.setup()
        with pool.connection() as connection:
            connection.execute("TRUNCATE checkpoints, checkpoint_blobs, checkpoint_writes")
        return saver
    raise ValueError(f"there is no saver `{kind}`")


class Clock:
    """Measures what stands inside `with`."""

    def __enter__(self):
        self.began = time.perf_counter_ns()
        return self

    def __exit__(self, *_):
        self.nanos = time.perf_counter_ns() - self.began


class Count(TypedDict):
    n: int


class Fan(TypedDict):
    total: Annotated[int, operator.add]


class Part(TypedDict):
    n: int


class Chat(TypedDict):
    messages: Annotated[list, operator.add]
    turns: int


class Payment(TypedDict):
    amount: int
    approved: bool


def chain(nodes):
    graph = StateGraph(Count)
    before = START
    for at in range(nodes):
        graph.add_node(f"n{at:04}", lambda state: None)
        graph.add_edge(before, f"n{at:04}")
        before = f"n{at:04}"
    return graph


def sequence(setting, nodes):
    graph = chain(nodes).compile(checkpointer=setting.saver)

    def run():
        with Clock() as clock:
            setting.invoke(graph, {"n": 1})
        return clock.nanos

    return setting.repeat(nodes, run)


def compiled(setting, nodes):
    def run():
        with Clock() as clock:
            chain(nodes).compile()
        return clock.nanos

    return setting.repeat(1, run)


def circle(supersteps, saver):
    def step(state):
        return {"n": state["n"] + 1}

    graph = StateGraph(Count)
    for name in "abc":
        graph.add_node(name, step)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_conditional_edges("c", lambda state: "a" if state["n"] < supersteps else END, ["a", END])
    return graph.compile(checkpointer=saver)


def in_circles(supersteps):
    return -(-supersteps // 3) * 3


def looped(setting, size):
    supersteps = in_circles(size)
    graph = circle(supersteps, setting.saver)

    def run():
        with Clock() as clock:
            state = setting.invoke(graph, {"n": 0})
        assert state["n"] == supersteps
        return clock.nanos

    return setting.repeat(supersteps, run)


def fan_out(setting, tasks, worker):
    graph = StateGraph(Fan)
    graph.add_node("worker", worker)
    graph.add_node("join", lambda state: None)
    graph.add_conditional_edges(START, lambda state: [Send("worker", n) for n in range(tasks)], ["worker"])
    graph.add_edge("worker", "join")
    graph = graph.compile(checkpointer=setting.saver)

    def run():
        with Clock() as clock:
            state = setting.invoke(graph, {"total": 0})
        assert state["total"] == tasks * (tasks - 1) // 2
        return clock.nanos

    return setting.repeat(tasks, run)


def fan(setting, tasks):
    return fan_out(setting, tasks, lambda n: {"total": n})


def subgraphs(setting, tasks):
    part = StateGraph(Part)
    part.add_node("first", lambda state: {"n": state["n"] + 1})
    part.add_node("second", lambda state: {"n": state["n"] - 1})
    part.add_edge(START, "first")
    part.add_edge("first", "second")
    part = part.compile()
    return fan_out(setting, tasks, lambda n: {"total": part.invoke({"n": n})["n"]})


def wide(setting, channels):
    nodes, written = 10, 10

    def text(key, step):
        return f"text {key:>8} {step:>6}"

    def node(step):
        first = step * written

        def run(state):
            assert state[f"k{first:04}"] == text(first, 0)
            return {f"k{key:04}": text(key, step + 1) for key in range(first, first + written)}

        return run

    graph = StateGraph(TypedDict("Wide", {f"k{key:04}": str for key in range(channels)}))
    before = START
    for step in range(nodes):
        graph.add_node(f"n{step}", node(step))
        graph.add_edge(before, f"n{step}")
        before = f"n{step}"
    graph = graph.compile(checkpointer=setting.saver)

    def run():
        value = {f"k{key:04}": text(key, 0) for key in range(channels)}
        with Clock() as clock:
            setting.invoke(graph, value)
        return clock.nanos

    return setting.repeat(nodes, run)


def said(role, n):
    """A message of 200 bytes."""
    return {"role": role, "content": f"{n:0>200}"}


def react(setting, rounds):
    def agent(state):
        turns = state.get("turns", 0)
        return {"messages": [said("ai", turns)], "turns": turns + 1}

    graph = StateGraph(Chat)
    graph.add_node("agent", agent)
    graph.add_node("tools", lambda state: {"messages": [said("tool", state["turns"])]})
    graph.add_edge(START, "agent")
    graph.add_conditional_edges(
        "agent", lambda state: "tools" if state["turns"] <= rounds else END, ["tools", END]
    )
    graph.add_edge("tools", "agent")
    graph = graph.compile(checkpointer=setting.saver)

    def run():
        with Clock() as clock:
            state = setting.invoke(graph, {"messages": [said("human", 0)]})
        assert len(state["messages"]) == 2 + 2 * rounds
        return clock.nanos

    return setting.repeat(rounds, run)


def agent(setting, rounds):
    """The prebuilt agent with a model that is a script; `create_agent` of LangChain has the same loop and costs more."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    @tool
    def look(at: int) -> str:
        """Looks."""
        return "x" * 200

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **kwargs):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            turn = len(messages) // 2
            calls = [{"id": str(turn), "name": "look", "args": {"at": turn}}] if turn < rounds else []
            return ChatResult(generations=[ChatGeneration(message=AIMessage("x" * 200, tool_calls=calls))])

    graph = create_react_agent(Scripted(), [look], checkpointer=setting.saver)

    def run():
        with Clock() as clock:
            state = setting.invoke(graph, {"messages": [{"role": "user", "content": "x" * 200}]})
        assert len(state["messages"]) == 2 + 2 * rounds
        return clock.nanos

    return setting.repeat(rounds, run)


def turn(setting, messages):
    def answer(state):
        turns = state.get("turns", 0)
        return {"messages": [said("ai", turns)], "turns": turns + 1}

    graph = StateGraph(Chat)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph = graph.compile(checkpointer=setting.saver)
    config = setting.config()
    setting.invoke(graph, {"messages": [said("human", n) for n in range(messages)]}, config)

    def run():
        with Clock() as clock:
            setting.invoke(graph, {"messages": [said("human", 1)]}, config)
        return clock.nanos

    return setting.repeat(1, run)


def appending(setting, supersteps, times):
    """A loop that appends a message in each superstep and notes when it began."""

    def step(state):
        times.append(time.perf_counter_ns())
        turns = state.get("turns", 0)
        return {"messages": [said("ai", turns)], "turns": turns + 1}

    graph = StateGraph(Chat)
    graph.add_node("turn", step)
    graph.add_edge(START, "turn")
    graph.add_conditional_edges(
        "turn", lambda state: "turn" if state["turns"] <= supersteps else END, ["turn", END]
    )
    return graph.compile(checkpointer=setting.saver)


def superstep(setting, messages):
    before, counted = 20, 60
    times = []
    graph = appending(setting, before + counted, times)

    def run():
        times.clear()
        setting.invoke(graph, {"messages": [said("human", n) for n in range(messages)]})
        return times[before + counted] - times[before]

    return setting.repeat(counted, run)


def long(setting, supersteps):
    part = 100
    times, also = [], []
    graph = appending(setting, supersteps, times)

    def run():
        times.clear()
        with Clock() as clock:
            setting.invoke(graph, {"turns": 0})
        also.append(["first", (times[part] - times[0]) / part])
        also.append(["last", (times[supersteps] - times[supersteps - part]) / part])
        return clock.nanos

    return {**setting.repeat(supersteps, run), "also": also}


def asked(setting, size):
    def approve(state):
        return {"approved": interrupt(f"Pay {state['amount']} euros?")}

    graph = StateGraph(Payment)
    graph.add_node("approve", approve)
    graph.add_edge(START, "approve")
    graph = graph.compile(checkpointer=setting.saver)

    def run():
        configs = [setting.config() for _ in range(size)]
        with Clock() as clock:
            for config in configs:
                setting.invoke(graph, {"amount": 3}, config)
                state = setting.invoke(graph, Command(resume=True), config)
                assert state["approved"] is True
        return clock.nanos

    return setting.repeat(size, run)


def first_event(setting, size):
    graph = circle(3, setting.saver)

    def run():
        waited = 0
        for _ in range(size):
            config = setting.config()
            with Clock() as clock:
                events = graph.stream({"n": 0}, config, stream_mode="updates", **setting.options())
                next(events)
            waited += clock.nanos
            for _ in events:
                pass
        return waited

    return setting.repeat(size, run)


def concurrent(setting, threads):
    supersteps = in_circles(9)
    graph = circle(supersteps, setting.saver)

    def run():
        configs = [setting.config() for _ in range(threads)]
        inputs = [{"n": 0} for _ in range(threads)]
        with Clock() as clock:
            states = graph.batch(inputs, configs, **setting.options())
        assert all(state["n"] == supersteps for state in states)
        return clock.nanos

    return setting.repeat(supersteps * threads, run)


WORKLOADS = {
    "sequence": sequence,
    "loop": looped,
    "fan": fan,
    "subgraphs": subgraphs,
    "compile": compiled,
    "wide": wide,
    "react": react,
    "agent": agent,
    "turn": turn,
    "superstep": superstep,
    "long": long,
    "interrupt": asked,
    "first-event": first_event,
    "concurrent": concurrent,
}


def answer(places, line):
    request = json.loads(line)
    workload = WORKLOADS.get(request["workload"])
    if workload is None:
        raise ValueError(f"there is no workload `{request['workload']}`")
    with ExitStack() as stack:
        return workload(Setting(places, request, stack), request["size"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True)
    parser.add_argument("--postgres")
    places = parser.parse_args()
    for line in sys.stdin:
        try:
            said_back = answer(places, line)
        except Exception as error:  # noqa: BLE001
            said_back = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said_back), flush=True)


if __name__ == "__main__":
    main()

"""LangChain's side of agents that are handed over: the agent of the Rust test, made with `create_agent`.

    agents.py sqlite FILE
    agents.py postgres URL

Reads a call on each line, as JSON, makes it, and writes what came of it on a line:

    {"thread": "1", "log": FILE, "mode": "per_call", "input": "Go."}        something that a person says
    {"thread": "1", "log": FILE, "mode": "batched", "answer": {...}}        the answer to the first question that is open

`{"create": NAME, "server": URL}` makes a database.
"""

import json
import sqlite3
import sys
import warnings
from contextlib import contextmanager

warnings.filterwarnings("ignore")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

LOG = None


def note(text):
    with open(LOG, "a") as file:
        file.write(text + "\n")


@tool
def look(at: int) -> str:
    """Looks."""
    note(f"look {at}")
    return f"look did {at}"


@tool
def write(at: int) -> str:
    """Writes."""
    note(f"write {at}")
    return f"write did {at}"


def asks(*calls):
    return AIMessage("", tool_calls=[{"id": id, "name": name, "args": {"at": at}} for id, name, at in calls])


SCRIPT = [
    asks(("1", "look", 1), ("2", "write", 2), ("3", "write", 3)),
    AIMessage("Done."),
    asks(("4", "look", 4)),
    AIMessage("The end."),
]


class Scripted(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = sum(message.type == "ai" for message in messages)
        message = SCRIPT[said].model_copy(update={"usage_metadata": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}})
        return ChatResult(generations=[ChatGeneration(message=message)])


@contextmanager
def checkpointer(kind, place):
    if kind == "sqlite":
        connection = sqlite3.connect(place, check_same_thread=False)
        yield SqliteSaver(connection)
        connection.close()
    else:
        with PostgresSaver.from_conn_string(place) as saver:
            saver.setup()
            yield saver


def questions(state):
    return [question for task in state.tasks if task.result is None for question in task.interrupts]


def make(call, kind, place):
    global LOG
    LOG = call["log"]
    with checkpointer(kind, place) as saver:
        agent = create_agent(
            Scripted(),
            [look, write],
            system_prompt="You look and write.",
            middleware=[
                HumanInTheLoopMiddleware({"write": True}, interrupt_mode=call["mode"]),
                ModelCallLimitMiddleware(thread_limit=100),
            ],
            checkpointer=saver,
        )
        config = {"configurable": {"thread_id": call["thread"]}}
        if "answer" in call:
            given = Command(resume={questions(agent.get_state(config))[0].id: call["answer"]})
        else:
            given = {"messages": [{"role": "user", "content": call["input"]}]}
        agent.invoke(given, config)
        state = agent.get_state(config)
        return {
            "messages": [[type(m).__name__, m.content] for m in state.values["messages"]],
            "counted": state.values.get("thread_model_call_count"),
            "open": len(questions(state)),
        }


def main(kind, place):
    for line in sys.stdin:
        call = json.loads(line)
        if "create" in call:
            import psycopg

            with psycopg.connect(call["server"], autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {call['create']}")
            came = {}
        else:
            came = make(call, kind, place)
        print(json.dumps(came), flush=True)


main(*sys.argv[1:])

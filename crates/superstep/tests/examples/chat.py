"""One turn of the conversation of `examples/chat.rs`, in Python.

    chat.py FILE TEXT

Prints the types and texts of all messages there are then.
"""

import sqlite3
import sys

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


def answer(state):
    return {"messages": [AIMessage(f"Python saw {len(state['messages'])}.")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
app = builder.compile(checkpointer=SqliteSaver(connection))
chat = app.invoke({"messages": [HumanMessage(sys.argv[2])]}, {"configurable": {"thread_id": "me"}})
for message in chat["messages"]:
    print(type(message).__name__, message.content)
connection.close()

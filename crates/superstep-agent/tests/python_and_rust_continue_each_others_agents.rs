//! Shows that a thread of LangChain's `create_agent` goes on here, and one of ours there, before every call: with approvals that one engine asks for and
//! the other is given, on SQLite and on PostgreSQL. Each tool runs once, and the conversations are the same.
//!
//! It could break if a node, a channel, a task id or a question differed in the least.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnyCheckpointer, InterruptId, Value};
use superstep::state::{Message, Role, ToolCall};
use superstep::{CompiledGraph, Snapshot};
use superstep_agent::middleware::{HumanInTheLoop, ModelCallLimit};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, ApprovalFormat, say, tool, tools};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;

/// What the test needs of Python. Newer versions of `langchain-core` ask for a `certifi` that some mirrors lack.
const PACKAGES: [&str; 4] = [
    "langgraph==1.2.20",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0",
    "psycopg[binary]",
];
const ALONE: [&str; 2] = ["langchain==1.5.0", "langchain-core==1.8.0"];

/// A Python with `create_agent`, set up in `target/` if it is not there.
fn python() -> Option<PathBuf> {
    if std::env::var_os("SUPERSTEP_TEST_PYTHON").is_none() {
        println!(
            "NOT RUN: set SUPERSTEP_TEST_PYTHON, and this test sets up a Python with LangChain"
        );
        return None;
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("langchain");
    let python = home.join("bin/python");
    let has = |python: &Path| {
        let tried = Command::new(python).args(["-c", "import langchain.agents"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if !has(&python) {
        let run = |command: &mut Command| assert!(command.status().expect("a program").success());
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        let pip = ["-m", "pip", "install", "--quiet"];
        run(Command::new(&python).args(pip).args(PACKAGES));
        run(Command::new(&python).args(pip).arg("--no-deps").args(ALONE));
    }
    Some(python)
}

/// LangChain's side.
struct Python(Child, ChildStdin, BufReader<ChildStdout>);

impl Python {
    fn start(program: &Path, place: [&str; 2]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/agents.py");
        let mut command = Command::new(program);
        command.arg(script).args(place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Self(child, input.expect("a pipe"), BufReader::new(output.expect("a pipe")))
    }

    fn call(&mut self, call: &Json) -> Json {
        writeln!(self.1, "{call}").expect("Python listens");
        let mut line = String::new();
        self.2.read_line(&mut line).expect("Python answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{call}: {error}: {line}"))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn note(text: String) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(LOG.with(|log| log.borrow().clone()));
    writeln!(file.expect("a file"), "{text}").expect("a file");
}

thread_local! {
    static LOG: std::cell::RefCell<PathBuf> = const { std::cell::RefCell::new(PathBuf::new()) };
}

/// Looks.
#[tool]
async fn look(at: i64) -> String {
    note(format!("look {at}"));
    format!("look did {at}")
}

/// Writes.
#[tool]
async fn write(at: i64) -> String {
    note(format!("write {at}"));
    format!("write did {at}")
}

/// The agent of `agents.py`.
fn agent(checkpointer: &AnyCheckpointer, mode: &str) -> CompiledGraph<AgentState> {
    let asks = |calls: &[(&str, &str, i64)]| {
        let calls = calls.iter().map(|(id, name, at)| ToolCall::new(*id, *name, [("at", *at)]));
        Message::ai("").with_tool_calls(calls)
    };
    let model = ScriptedModel::following([
        asks(&[("1", "look", 1), ("2", "write", 2), ("3", "write", 3)]),
        Message::ai("Done."),
        asks(&[("4", "look", 4)]),
        Message::ai("The end."),
    ]);
    let agent = Agent::new(model).prompt("You look and write.").tools(tools![look, write]);
    let agent = match mode {
        "batched" => agent.with(HumanInTheLoop::on("write")),
        _ => agent.approve("write").approval_format(ApprovalFormat::PerCall),
    };
    agent
        .with(ModelCallLimit::on_thread(100))
        .build()
        .expect("an agent")
        .with_any_checkpointer(checkpointer.clone())
}

fn questions(looked: &Snapshot<AgentState>) -> Vec<InterruptId> {
    let open = looked.tasks.iter().filter(|task| task.result.is_none());
    open.flat_map(|task| &task.interrupts).map(|question| question.id.clone()).collect()
}

async fn rust(checkpointer: &AnyCheckpointer, call: &Json) -> Json {
    LOG.with(|log| *log.borrow_mut() = call["log"].as_str().expect("a file").into());
    let agent = agent(checkpointer, call["mode"].as_str().expect("a mode"));
    let thread = agent.thread(call["thread"].as_str().expect("a thread"));
    let run = match call.get("answer") {
        Some(answer) => {
            let open = questions(&thread.get_state().await.expect("a look"));
            thread.resume_all([(open[0].clone(), answer.clone())])
        }
        None => thread.invoke(say(call["input"].as_str().expect("words"))),
    };
    run.await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
    let looked = thread.get_state().await.expect("a look");
    let class = |message: &Message| match message.role {
        Role::Ai => "AIMessage",
        Role::Tool => "ToolMessage",
        _ => "HumanMessage",
    };
    let messages = looked.state().messages.iter();
    let messages: Vec<_> = messages.map(|it| json!([class(it), it.text()])).collect();
    let counted = looked.state().layer("thread_model_call_count").and_then(Value::as_i64);
    json!({ "messages": messages, "counted": counted, "open": questions(&looked).len() })
}

/// Hands threads over before each call, in both directions, in both modes of approvals.
async fn hand_over(python: &mut Python, checkpointer: &AnyCheckpointer) {
    let (approve, reject) =
        (json!({ "type": "approve" }), json!({ "type": "reject", "message": "no" }));
    let (go, and_now) = (json!({ "input": "Go." }), json!({ "input": "And now?" }));
    let answer = |answer: &Json| json!({ "answer": answer });
    let both = answer(&json!({ "decisions": [approve, reject] }));
    let each = [go.clone(), answer(&approve), answer(&reject), and_now.clone()];
    pass(python, checkpointer, "per_call", 2, &each).await;
    pass(python, checkpointer, "batched", 1, &[go, both, and_now]).await;
}

async fn pass(
    python: &mut Python,
    checkpointer: &AnyCheckpointer,
    mode: &str,
    questions: usize,
    calls: &[Json],
) {
    let mut whole: Option<Vec<Json>> = None;
    for python_begins in [true, false] {
        for split in 0..=calls.len() {
            let thread = format!("{mode} {python_begins} {split}");
            let log = format!("agents {} {thread}", std::process::id());
            let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(log);
            let mut came = Vec::new();
            for (nth, call) in calls.iter().enumerate() {
                let mut call = call.clone();
                (call["thread"], call["log"], call["mode"]) =
                    (json!(thread), json!(log), json!(mode));
                came.push(match (nth < split) == python_begins {
                    true => python.call(&call),
                    false => rust(checkpointer, &call).await,
                });
            }
            let ran = std::fs::read_to_string(&log).expect("a log");
            std::fs::remove_file(&log).expect("a log");
            // Tools of one turn run side by side.
            let mut ran: Vec<_> = ran.lines().collect();
            ran.sort_unstable();
            assert_eq!(ran, ["look 1", "look 4", "write 2"], "{thread}: each tool once");
            let last = came.last().expect("calls");
            assert_eq!(last["counted"], json!(4), "{thread}: {last:?}");
            assert_eq!(came[0]["open"], json!(questions), "{thread}");
            let same = whole.get_or_insert_with(|| came.clone());
            assert_eq!(same, &came, "{thread}");
        }
    }
}

#[tokio::test]
async fn threads_pass_between_the_engines_in_a_file_and_on_a_server() {
    let Some(program) = python() else { return };
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{}.db", std::process::id()));
    let place = file.display().to_string();
    let checkpointer = AnyCheckpointer::new(SqliteSaver::open(&file).await.expect("a file"));
    hand_over(&mut Python::start(&program, ["sqlite", &place]), &checkpointer).await;
    drop(checkpointer);
    std::fs::remove_file(&file).expect("the file");

    let server = superstep_testdb::server_url();
    let (place, options) = match server.split_once('?') {
        Some((place, options)) => (place, format!("?{options}")),
        None => (&*server, String::new()),
    };
    let name = format!("superstep_agents_{}", std::process::id());
    let url = format!("{}/{name}{options}", place.rsplit_once('/').expect("a URL").0);
    let mut python = Python::start(&program, ["postgres", &url]);
    python.call(&json!({ "create": name, "server": server }));
    let checkpointer = AnyCheckpointer::new(PostgresSaver::connect(&*url).await.expect("a server"));
    hand_over(&mut python, &checkpointer).await;
}

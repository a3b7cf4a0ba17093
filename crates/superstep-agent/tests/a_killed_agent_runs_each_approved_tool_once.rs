//! Shows that of two calls which wait for approval side by side each runs once, whichever is answered first, although the process is killed
//! after the first: what one has done is stored before the other is answered.
//!
//! The other process is this test binary again, told by a variable what to be.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use superstep::CompiledGraph;
use superstep::state::{Message, ToolCall};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, Decision, say, tool, tools};
use superstep_sqlite::SqliteSaver;

const FILE: &str = "SUPERSTEP_TEST_FILE";
const FIRST: &str = "SUPERSTEP_TEST_FIRST";

/// Writes a line, which is seen whatever happens to the process.
fn tell(file: &Path, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.expect("a file"), "{line}").expect("a file");
}

/// Pays.
#[tool(approve)]
async fn pay(to: String, superstep::Ctx(log): superstep::Ctx<PathBuf>) -> String {
    tell(&log, &to);
    format!("{to} is paid")
}

async fn agent(file: &Path) -> CompiledGraph<AgentState> {
    let pay_to = |to: &str| ToolCall::new(to, "pay", [("to", to)]);
    let asks = Message::ai("").with_tool_calls([pay_to("ada"), pay_to("bob")]);
    let model = ScriptedModel::following([asks, Message::ai("Both are paid.")]);
    let agent = Agent::new(model).tools(tools![pay]).build().expect("an agent");
    let agent = agent.with_context(file.with_extension("log"));
    agent.with_checkpointer(SqliteSaver::open(file).await.expect("a file"))
}

/// Not a test by itself: what the other process does. It answers one question, says so, and waits to be killed.
#[tokio::test]
async fn as_another_process() {
    let Ok(file) = std::env::var(FILE) else { return };
    let first: usize = std::env::var(FIRST).expect("a number").parse().expect("a number");
    let thread = agent(file.as_ref()).await.thread("t");
    let asked = thread.invoke(say("Pay.")).await.expect("a run").interrupted().expect("questions");
    let answer = [(asked[first].id.clone(), Decision::Approve)];
    thread.resume_all(answer).await.expect("a run").interrupted().expect("the other question");
    println!("\nanswered {}", asked[1 - first].id);
    std::io::stdout().flush().expect("somebody who listens");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn each_runs_once_in_either_order() {
    for first in [0, 1] {
        let name = format!("killed-agent-{}-{first}.db", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "as_another_process", "--nocapture"])
            .envs([(FILE, file.as_os_str()), (FIRST, first.to_string().as_ref())])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let left = lines.find_map(|line| Some(line.ok()?.strip_prefix("answered ")?.to_owned()));
        child.kill().expect("killed");
        child.wait().expect("an end");

        let thread = agent(&file).await.thread("t");
        let left = superstep::checkpoint::InterruptId::new(left.expect("a question"));
        let state = thread.resume_all([(left, Decision::Approve)]).await.expect("a run");
        let state = state.done().expect("an end");
        let log = file.with_extension("log");
        let ran = std::fs::read_to_string(&log).expect("a log");
        let expected = if first == 0 { "ada\nbob\n" } else { "bob\nada\n" };
        assert_eq!(ran, expected, "each once");
        assert_eq!(state.messages[2].text(), "ada is paid");
        assert_eq!((state.messages.len(), state.reply().as_ref()), (5, "Both are paid."));
        for file in [file, log] {
            std::fs::remove_file(file).expect("the file");
        }
    }
}

//! Shows that middleware runs in LangChain's order, and what each of the built-in ones does: the promises that people of the other engine miss are
//! among them.

use std::sync::Mutex;
use std::time::Duration;

use superstep::prelude::*;
use superstep::state::{Role, State as StateTrait, ToolCall};
use superstep::testing::virtual_time;
use superstep::{Data, Task};
use superstep_agent::middleware::*;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{
    Agent, AgentState, AgentUpdate, ModelError, Price, Profile, ToolError, ToolOutput, Trouble, say,
};

use crate::common::{Log, asks, said};

/// Notes when it is called.
struct Noisy(&'static str, Log);

impl<X: StateTrait> Middleware<X> for Noisy {
    const HOOKS: &'static [Hook] =
        &[Hook::BeforeAgent, Hook::BeforeModel, Hook::AfterModel, Hook::AfterAgent];

    fn name(&self) -> &str {
        self.0
    }

    async fn before_agent(
        &self,
        _: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        self.1.note(task.name());
        Ok(AgentUpdate::default())
    }

    async fn before_model(
        &self,
        _: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        self.1.note(task.name());
        Ok(AgentUpdate::default())
    }

    async fn after_model(
        &self,
        _: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        self.1.note(task.name());
        Ok(AgentUpdate::default())
    }

    async fn after_agent(
        &self,
        _: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        self.1.note(task.name());
        Ok(AgentUpdate::default())
    }

    async fn wrap_model(
        &self,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        self.1.note(format!("{} model", self.0));
        next.run(call).await
    }

    async fn wrap_tool(&self, call: ToolRun, next: NextTool) -> Result<ToolOutput, ToolError> {
        self.1.note(format!("{} tool", self.0));
        next.run(call).await
    }
}

#[tokio::test]
async fn hooks_and_layers_run_in_langchains_order() {
    let log = Log::default();
    let model = ScriptedModel::following([asks([("1", "look", 1)]), Message::ai("Done.")]);
    let agent = Agent::new(model)
        .tools([Log::default().tool("look")])
        .with(Noisy("A", log.clone()))
        .with(Noisy("B", log.clone()));
    let agent = agent.build().expect("an agent");
    agent.invoke(say("Go.")).await.expect("a run").done().expect("an end");
    let round = [
        "A.before_model",
        "B.before_model",
        "A model",
        "B model",
        "B.after_model",
        "A.after_model",
    ];
    let expected = ["A.before_agent", "B.before_agent"].into_iter().chain(round);
    let expected = expected.chain(["A tool", "B tool"]).chain(round);
    let expected: Vec<_> = expected.chain(["B.after_agent", "A.after_agent"]).collect();
    assert_eq!(log.taken(), expected);
}

fn busy() -> Result<Message, ModelError> {
    Err(ModelError::new(Trouble::RateLimited, "slow down").after(Duration::from_secs(30)))
}

#[test]
fn a_model_in_trouble_is_asked_again_when_it_says_or_another_is() {
    virtual_time(async {
        let model = ScriptedModel::new([busy(), busy(), ScriptedModel::says("Here.")]);
        let agent = Agent::new(model.clone()).with(ModelRetry::default()).build().expect("one");
        let begun = tokio::time::Instant::now();
        let state = agent.invoke(say("Hello?")).await.expect("a run").done().expect("an end");
        assert_eq!((state.reply().as_ref(), model.requests().len()), ("Here.", 3));
        assert_eq!(begun.elapsed().as_secs(), 60, "as the provider wanted");

        let wrong = || Err(ModelError::new(Trouble::Unauthorized, "no such key"));
        let model = ScriptedModel::new([wrong(), wrong()]);
        let agent = Agent::new(model.clone()).with(ModelRetry::default()).build().expect("one");
        agent.invoke(say("Hello?")).await.expect_err("a wrong key stays wrong");
        assert_eq!(model.requests().len(), 1);

        let other = ScriptedModel::new(["I am the other."]);
        let agent = Agent::new(model).with(ModelFallback::to(other)).build().expect("one");
        let state = agent.invoke(say("Hello?")).await.expect("a run").done().expect("an end");
        assert_eq!(state.reply(), "I am the other.");
    });
}

#[tokio::test]
async fn calls_are_limited_on_a_thread_and_in_a_run() {
    let always = || {
        ScriptedModel::answering(|it| {
            let id = it.messages.len().to_string();
            Message::ai("").with_tool_calls([ToolCall::new(id, "look", [("at", 1)])])
        })
    };
    let log = Log::default();
    let agent = Agent::new(always()).tools([log.tool("look")]).with(ModelCallLimit::on_thread(3));
    let agent = agent.build().expect("an agent").with_checkpointer(MemorySaver::new());
    let state = agent.thread("1").invoke(say("Go.")).await.expect("a run").done().expect("an end");
    assert_eq!(state.reply(), "Model call limits exceeded: thread limit (3/3)");
    assert_eq!(log.taken().len(), 3);
    let state = agent.thread("1").invoke(say("Go.")).await.expect("a run").done().expect("an end");
    assert_eq!(state.reply(), "Model call limits exceeded: thread limit (3/3)", "it is stored");

    let agent = Agent::new(always()).tools([log.tool("look")]);
    let agent = agent.with(ToolCallLimit::in_run(2)).with(ModelCallLimit::in_run(4));
    let agent = agent.build().expect("an agent");
    let state = agent.invoke(say("Go.")).await.expect("a run").done().expect("an end");
    assert_eq!(log.taken().len(), 2);
    assert!(said(&state).iter().any(|it| it.starts_with("tool: Tool call limit exceeded.")));
}

fn long_talk(
    keep: usize,
    model: ScriptedModel,
) -> (superstep::CompiledGraph<AgentState>, ScriptedModel) {
    let asked = ScriptedModel::answering(|_| Message::ai("Well."));
    let summary = Summarization::at_messages(model, 5).keep(keep);
    let agent = Agent::new(asked.clone()).with(summary).build().expect("an agent");
    (agent, asked)
}

fn talk() -> AgentUpdate {
    let call = asks([("1", "look", 1), ("2", "look", 2)]);
    let first = [Message::human("one"), Message::ai("two"), Message::human("three"), call];
    let results = [Message::tool("1", "four"), Message::tool("2", "five")];
    AgentUpdate::default().messages(first.into_iter().chain(results).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_summary_keeps_results_with_their_calls_and_does_not_leak_into_the_stream() {
    for keep in 1..5 {
        let summarizer = ScriptedModel::answering(|_| Message::ai("It went on.")).streaming();
        let (agent, asked) = long_talk(keep, summarizer);
        let mut run = agent.invoke(talk()).stream([Mode::Messages]);
        let mut streamed = String::new();
        while let Some(event) = run.next().await {
            let Data::Messages(event) = event.expect("an event").data else { continue };
            let message: Message = superstep::checkpoint::from_value(event.chunk).expect("one");
            assert!(!message.is_chunk(), "only the summarizer streams: {message:?}");
            if event.metadata.get("langgraph_node") == Some(&"model".into()) {
                streamed.push_str(&message.text());
            }
        }
        assert_eq!(streamed, "Well.");
        let request = &asked.requests()[0].messages;
        assert!(request[0].text().contains("It went on."), "keep {keep}: {request:?}");
        for (at, result) in request.iter().enumerate().filter(|(_, it)| it.role == Role::Tool) {
            let id = result.tool_call_id.clone();
            let called = request[..at].iter().flat_map(|it| &it.tool_calls).any(|it| it.id == id);
            assert!(called, "keep {keep}: {request:?}");
        }
    }
}

#[tokio::test]
async fn a_failed_summary_leaves_the_conversation_as_it_is() {
    for summary in [busy(), ScriptedModel::says("  ")] {
        let (agent, asked) = long_talk(1, ScriptedModel::new([summary]));
        let state = agent.invoke(talk()).await.expect("a run").done().expect("an end");
        assert_eq!((state.messages.len(), asked.requests()[0].messages.len()), (7, 6));
    }
}

#[tokio::test]
async fn the_model_keeps_a_list_of_what_is_to_do() {
    let todo = serde_json::json!([{ "content": "look", "status": "in_progress" }]);
    let call = ToolCall::new("1", "write_todos", [("todos", Value::from(todo))]);
    let script = [Message::ai("").with_tool_calls([call]), Message::ai("Planned.")];
    let model = ScriptedModel::following(script);
    let agent = Agent::new(model.clone()).prompt("Be brief.").with(TodoList).build().expect("one");
    let state = agent.invoke(say("Plan.")).await.expect("a run").done().expect("an end");
    let todos: Vec<Todo> =
        superstep::checkpoint::from_value(state.layer("todos").cloned().expect("a list"))
            .expect("todos");
    assert_eq!(todos[0].status, TodoStatus::InProgress);
    let system = model.requests()[0].system.clone().expect("a prompt");
    assert!(system.text().starts_with("Be brief.\n\n"), "{}", system.text());
}

#[tokio::test]
async fn a_budget_survives_a_restart() {
    let expensive = || {
        let mut message = Message::ai("Costly.");
        let usage = [("input_tokens", 60), ("output_tokens", 20)];
        let usage = usage.map(|(name, number)| (name.to_owned(), number.into()));
        message.usage_metadata = Some(usage.into_iter().collect());
        ScriptedModel::answering(move |_| message.clone())
            .with_profile(Profile::new("x").with_price(Price { input: 3.0, output: 15.0 }))
    };
    let saver = MemorySaver::new();
    for (nth, expected) in
        ["Costly.", "Costly.", "The budget of this thread is used up: 160 tokens."]
            .into_iter()
            .enumerate()
    {
        // Another process has another agent.
        let agent = Agent::new(expensive()).with(Budget::tokens(150)).build().expect("an agent");
        let thread = agent.with_checkpointer(saver.clone()).thread("1");
        let state = thread.invoke(say("Go.")).await.expect("a run").done().expect("an end");
        assert_eq!(state.reply(), expected, "run {nth}");
        let money = state.layer("budget").and_then(|it| it.get("millionths")).cloned();
        assert_eq!(money, Some((480 * (nth as i64 + 1).min(2)).into()));
    }
}

#[tokio::test]
async fn requests_leave_out_what_is_not_needed_and_nobodys_data_gets_there() {
    let model = ScriptedModel::answering(|_| Message::ai("Well."));
    let chooser = ScriptedModel::answering(|_| Message::ai(r#"["look", "nothing"]"#));
    let log = Log::default();
    let agent = Agent::new(model.clone())
        .tools(["look", "write", "pay"].map(|name| log.tool(name)))
        .with(ClearToolUses::default().from_tokens(1).keep(1))
        .with(ToolSelection::by(chooser, 1).always(["pay"]))
        .with(Pii::email());
    let agent = agent.build().expect("an agent");
    let input = talk().and(say("Write to ada@example.org."));
    let state = agent.invoke(input).await.expect("a run").done().expect("an end");
    let request = &model.requests()[0];
    let results = request.messages.iter().filter(|it| it.role == Role::Tool);
    assert_eq!(results.map(|it| it.text().into_owned()).collect::<Vec<_>>(), ["[cleared]", "five"]);
    assert_eq!(state.messages[4].text(), "four", "the conversation keeps it");
    let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["look", "pay"]);
    assert_eq!(state.messages[6].text(), "Write to [REDACTED_EMAIL].");
}

#[test]
fn a_tool_that_hangs_or_says_too_much_is_told_to_the_model() {
    virtual_time(async {
        let hang = superstep_agent::tool::function::<crate::common::At>("hang", "Hangs.")
            .run(|_, _: superstep_agent::Invocation| std::future::pending::<String>());
        let flood = superstep_agent::tool::function::<crate::common::At>("flood", "Says a lot.")
            .run(|_, _: superstep_agent::Invocation| async { "é".repeat(25_000_000) });
        let asked = asks([("1", "hang", 1), ("2", "flood", 2)]);
        let model = ScriptedModel::following([asked, Message::ai("Well.")]);
        let bounds = ToolBounds::time(Duration::from_secs(60)).bytes(101);
        let agent = Agent::new(model).tools([hang, flood]).with(bounds).build().expect("an agent");
        let state = agent.invoke(say("Go.")).await.expect("a run").done().expect("an end");
        let lines = said(&state);
        assert_eq!(lines[2], "tool: Error: tool `hang` had no result within 60s.");
        assert!(lines[3].ends_with("é\n[49999900 more bytes were cut off]"), "{}", lines[3]);
    });
}

#[tokio::test]
async fn a_tool_in_trouble_is_called_again_with_the_same_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = keys.clone();
    let flaky = superstep_agent::tool::function::<crate::common::At>("flaky", "Fails once.").run(
        move |_, run: superstep_agent::Invocation| {
            let mut keys = seen.lock().expect("no panic");
            keys.push(run.call().idempotency_key().to_owned());
            let first = keys.len() == 1;
            async move {
                match first {
                    true => Err(NodeError::transient("busy")),
                    false => Ok("done".to_owned()),
                }
            }
        },
    );
    let model = ScriptedModel::following([asks([("1", "flaky", 1)]), Message::ai("Done.")]);
    let backoff = Backoff::default().waits(Duration::ZERO, 1.0, Duration::ZERO);
    let agent = Agent::new(model).tools([flaky]).with(ToolRetry::new(backoff)).build();
    let agent = agent.expect("an agent");
    agent.invoke(say("Go.")).await.expect("a run").done().expect("an end");
    let keys = keys.lock().expect("no panic");
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

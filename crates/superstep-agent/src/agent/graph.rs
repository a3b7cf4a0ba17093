//! The graph of an agent: LangChain's nodes and edges.

use std::collections::HashSet;
use std::sync::Arc;

use superstep::state::{Schema, State, Table};
use superstep::{CompileError, CompiledGraph, END, START, StateGraph, Targets, Task};

use super::model_node::ModelNode;
use super::route::Routes;
use super::{Agent, ToolNode};
use crate::middleware::{AnyMiddleware, Hook};
use crate::state::{AgentState, JumpTo, LayerChannel};
use crate::tool::{AnyTool, matches};

pub(super) const MODEL: &str = "model";
pub(super) const TOOLS: &str = "tools";

type Layer<X> = Arc<dyn AnyMiddleware<X>>;

pub(super) fn build<X: State>(
    mut agent: Agent<X>,
) -> Result<CompiledGraph<AgentState<X>>, CompileError> {
    let layers = std::mem::take(&mut agent.middleware);
    let mut tools = std::mem::take(&mut agent.tools);
    tools.extend(layers.iter().flat_map(|layer| layer.tools()));
    let problems = problems(&agent, &layers, &tools);
    if !problems.is_empty() {
        return Err(CompileError::new(problems));
    }
    let channels = layers.iter().flat_map(|layer| layer.channels());
    let schema = AgentState::schema(table(channels), agent.messages);
    let places = Places::of(&layers);
    let routes = Arc::new(Routes::new(&agent, &tools, places.loop_entry(), places.exit()));
    let name = agent.name.clone().unwrap_or_else(|| "agent".into());
    let model = Arc::new(ModelNode::new(&agent, &tools, &layers));
    let mut graph = StateGraph::with_schema(schema).name(name);
    graph = graph.add_node(MODEL, move |state: Arc<AgentState<X>>, task: Task| {
        model.clone().run(state, task)
    });
    if !tools.is_empty() {
        let node = Arc::new(ToolNode::new(&agent, tools.clone(), &layers));
        graph = graph.add_node(TOOLS, move |call, state: Arc<AgentState<X>>, task: Task| {
            node.clone().run(call, state, task)
        });
    }
    for (layer, hook) in places.all() {
        let node = layer.clone();
        graph = graph.add_node(node_name(&layer, hook), move |state, task| {
            node.clone().hook(hook, state, task)
        });
    }
    connect(graph, &places, &routes, !tools.is_empty()).compile()
}

fn table(channels: impl Iterator<Item = LayerChannel>) -> Schema<Table> {
    let mut table = Schema::default();
    for LayerChannel { name, channel, private } in channels {
        let added = table.table(name, channel);
        if private {
            added.private();
        }
    }
    table
}

fn node_name<X: State>(layer: &Layer<X>, hook: Hook) -> String {
    format!("{}.{}", layer.name(), hook.as_str())
}

/// The middlewares that have each hook, in the order in which they run.
struct Places<X: State> {
    before_agent: Vec<Layer<X>>,
    before_model: Vec<Layer<X>>,
    after_model: Vec<Layer<X>>,
    after_agent: Vec<Layer<X>>,
}

impl<X: State> Places<X> {
    fn of(layers: &[Layer<X>]) -> Self {
        let with = |hook| -> Vec<Layer<X>> {
            layers.iter().filter(|layer| layer.hooks().contains(&hook)).cloned().collect()
        };
        let reversed = |mut list: Vec<Layer<X>>| {
            list.reverse();
            list
        };
        Self {
            before_agent: with(Hook::BeforeAgent),
            before_model: with(Hook::BeforeModel),
            after_model: reversed(with(Hook::AfterModel)),
            after_agent: reversed(with(Hook::AfterAgent)),
        }
    }

    fn named(&self, hook: Hook) -> Vec<String> {
        let layers = match hook {
            Hook::BeforeAgent => &self.before_agent,
            Hook::BeforeModel => &self.before_model,
            Hook::AfterModel => &self.after_model,
            Hook::AfterAgent => &self.after_agent,
        };
        layers.iter().map(|layer| node_name(layer, hook)).collect()
    }

    fn all(&self) -> impl Iterator<Item = (Layer<X>, Hook)> + '_ {
        let before_agent = self.before_agent.iter().map(|layer| (layer, Hook::BeforeAgent));
        let before_model = self.before_model.iter().map(|layer| (layer, Hook::BeforeModel));
        let after_model = self.after_model.iter().map(|layer| (layer, Hook::AfterModel));
        let after_agent = self.after_agent.iter().map(|layer| (layer, Hook::AfterAgent));
        let all = before_agent.chain(before_model).chain(after_model).chain(after_agent);
        all.map(|(layer, hook)| (layer.clone(), hook))
    }

    /// Where each round begins.
    fn loop_entry(&self) -> Arc<str> {
        let first = self.named(Hook::BeforeModel).into_iter().next();
        first.map_or_else(|| MODEL.into(), Into::into)
    }

    /// Where the agent ends.
    fn exit(&self) -> Arc<str> {
        let first = self.named(Hook::AfterAgent).into_iter().next();
        first.map_or_else(|| END.into(), Into::into)
    }
}

/// Adds the edges.
fn connect<X: State>(
    mut graph: StateGraph<AgentState<X>>,
    places: &Places<X>,
    routes: &Arc<Routes>,
    has_tools: bool,
) -> StateGraph<AgentState<X>> {
    let before_agent = places.named(Hook::BeforeAgent);
    let before_model = places.named(Hook::BeforeModel);
    let after_model = places.named(Hook::AfterModel);
    let after_agent = places.named(Hook::AfterAgent);
    let (entry, exit) = (places.loop_entry(), places.exit());
    let first = before_agent.first().map_or_else(|| entry.clone(), |name| name.as_str().into());
    graph = graph.add_edge(START, first);
    let jumps = Jumps { model: entry.clone(), end: exit.clone(), has_tools };
    graph = chain(graph, &before_agent, &entry, &jumps, routes);
    graph = chain(graph, &before_model, MODEL, &jumps, routes);
    graph = chain(graph, &after_agent, END, &jumps, routes);
    // What is decided after the model is decided by the last node there, which is the model itself without hooks.
    let decides = after_model.last().map_or(MODEL, String::as_str).to_owned();
    if let Some(first) = after_model.first() {
        graph = graph.add_edge(MODEL, first.as_str());
    }
    let [onwards @ .., _] = &after_model[..] else {
        return decide(graph, &decides, &jumps, routes);
    };
    for (at, name) in onwards.iter().enumerate() {
        graph = jump(graph, name, &after_model[at + 1], &jumps, routes);
    }
    decide(graph, &decides, &jumps, routes)
}

/// Where a hook may send the agent.
struct Jumps {
    model: Arc<str>,
    end: Arc<str>,
    has_tools: bool,
}

impl Jumps {
    fn targets(&self, onwards: Option<&str>) -> Targets {
        let mut targets: Vec<Arc<str>> = onwards.map(Into::into).into_iter().collect();
        let tools = self.has_tools.then(|| TOOLS.into());
        for target in [self.end.clone(), self.model.clone()].into_iter().chain(tools) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Targets::from(targets)
    }
}

fn chain<X: State>(
    mut graph: StateGraph<AgentState<X>>,
    nodes: &[String],
    last: &str,
    jumps: &Jumps,
    routes: &Arc<Routes>,
) -> StateGraph<AgentState<X>> {
    for (at, name) in nodes.iter().enumerate() {
        let onwards = nodes.get(at + 1).map_or(last, String::as_str);
        graph = jump(graph, name, onwards, jumps, routes);
    }
    graph
}

/// An edge that a jump overrides.
fn jump<X: State>(
    graph: StateGraph<AgentState<X>>,
    from: &str,
    onwards: &str,
    jumps: &Jumps,
    routes: &Arc<Routes>,
) -> StateGraph<AgentState<X>> {
    let (routes, target): (_, Arc<str>) = (routes.clone(), onwards.into());
    graph.add_conditional_edges(from, jumps.targets(Some(onwards)), move |state: &AgentState<X>| {
        match state.jump_to {
            Some(to) => routes.jump(to, state),
            None => superstep::node::Routes::to(target.clone()),
        }
    })
}

fn decide<X: State>(
    mut graph: StateGraph<AgentState<X>>,
    from: &str,
    jumps: &Jumps,
    routes: &Arc<Routes>,
) -> StateGraph<AgentState<X>> {
    let after_model = routes.clone();
    graph = graph.add_conditional_edges(from, jumps.targets(None), move |state: &AgentState<X>| {
        after_model.after_model(state)
    });
    if jumps.has_tools {
        let after_tools = routes.clone();
        let targets = vec![jumps.model.clone(), jumps.end.clone()];
        graph = graph.add_conditional_edges(TOOLS, targets, move |state: &AgentState<X>| {
            after_tools.after_tools(state)
        });
    }
    graph
}

impl JumpTo {
    pub(super) fn is_tools(self) -> bool {
        self == Self::Tools
    }
}

/// What is wrong with the declaration.
fn problems<X: State>(agent: &Agent<X>, layers: &[Layer<X>], tools: &[AnyTool]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    for tool in tools {
        let name = &*tool.spec().name;
        if name.is_empty() {
            problems.push("a tool has no name".to_owned());
        } else if !seen.insert(name) {
            problems.push(format!("two tools have the name `{name}`; rename one of them"));
        }
    }
    if let Some(answer) = &agent.answer
        && seen.contains(&*answer.schema.name)
    {
        let name = &answer.schema.name;
        problems.push(format!(
            "a tool has the name of the answer's type, `{name}`; rename one of them"
        ));
    }
    for (pattern, _) in &agent.approvals {
        if !tools.iter().any(|tool| matches(pattern, &tool.spec().name)) {
            let near = superstep_names::nearest(pattern, seen.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            problems.push(format!("no tool matches `{pattern}`, which is to be approved{near}"));
        }
    }
    let mut names = HashSet::new();
    for layer in layers {
        if !names.insert(layer.name().to_owned()) {
            let name = layer.name();
            problems.push(format!("two middlewares have the name `{name}`; give one another name"));
        }
    }
    let mut channels = HashSet::new();
    for channel in layers.iter().flat_map(|layer| layer.channels()) {
        let own = AgentState::<X>::schema(Schema::default(), agent.messages);
        if !channels.insert(channel.name) || own.names().any(|name| **name == *channel.name) {
            problems.push(format!("two channels have the name `{}`", channel.name));
        }
    }
    problems
}

//! From a declared graph to channels, nodes and triggers.

use std::collections::HashMap;
use std::sync::Arc;

use super::builder::{Branch, NodeDecl, StateGraph, Targets};
use super::compiled::CompiledGraph;
use crate::engine::Compiled;
use crate::engine::NodeOptions;
use crate::engine::{
    ControlKind, ControlSpec, END, Layout, NodeDef, Reads, START, StartValue, TASKS,
    needed_context, not_an_update,
};
use crate::error::{CompileError, NodeError};
use crate::node::{BoxFuture, Goto, Invocation, Node, Output, RouteContext, Router, Routes};
use crate::state::{ErasedSchema, Row, Schema, State, Writes};

impl<S: State, O> StateGraph<S, O> {
    /// Checks the graph and makes it ready to run.
    ///
    /// # Errors
    /// Everything that is wrong with the graph, at once.
    pub fn compile(self) -> Result<CompiledGraph<S, O>, CompileError> {
        let (problems, warnings) = self.check();
        if !problems.is_empty() {
            return Err(CompileError::new(problems));
        }
        for warning in &warnings {
            tracing::warn!(graph = %self.name, "{warning}");
        }
        let (breakpoints, step_timeout, memory, finish) =
            (self.breakpoints.clone(), self.step_timeout, self.memory, self.finish);
        let edges = self.drawn_edges();
        let layout = Arc::new(self.layout());
        let compiled = Compiled {
            layout,
            breakpoints,
            step_timeout,
            memory,
            warnings,
            edges,
            saver: None,
            store: None,
            cache: None,
        };
        Ok(CompiledGraph::new(Arc::new(compiled), finish))
    }

    fn layout(self) -> Layout {
        let Self {
            schema,
            name,
            nodes,
            edges,
            joins,
            branches,
            defaults,
            default_handler,
            input,
            output,
            lenient,
            ..
        } = self;
        let schema = Arc::new(schema);
        let erased: Arc<dyn ErasedSchema> = schema.clone();
        let channels = erased.specs();
        let index = |names: &[Arc<str>]| {
            let found = names.iter().map(|name| channels.iter().position(|c| c.name == *name));
            found.flatten().collect::<Vec<usize>>()
        };
        let public: Vec<usize> = (0..channels.len()).filter(|at| !channels[*at].private).collect();
        let input = input.as_deref().map_or_else(|| public.clone(), index);
        let output = output.as_deref().map_or_else(|| public.clone(), index);

        let mut plan = Plan::new(nodes, defaults, default_handler);
        plan.lay_controls(joins);
        let defs = plan.define(
            &edges,
            branches,
            |decl: Option<&NodeDecl>| match decl {
                None => Reads::Start,
                Some(decl) => Reads::Channels(match &decl.reads {
                    None => public.clone(),
                    Some(names) => index(names),
                }),
            },
            &erased,
            &input,
            lenient,
        );
        let Plan { controls, .. } = plan;

        let mut triggered = vec![Vec::new(); controls.len()];
        for (at, def) in defs.iter().enumerate() {
            for control in &def.triggers {
                triggered[*control].push(at);
            }
        }
        let deferred = (controls.iter().enumerate())
            .filter(|(_, spec)| {
                matches!(
                    spec.kind,
                    ControlKind::Branch { deferred: true }
                        | ControlKind::Join { deferred: true, .. }
                )
            })
            .map(|(at, _)| at)
            .collect();
        let mut by_rank: Vec<usize> = (0..defs.len()).collect();
        by_rank.sort_by_key(|at| defs[*at].name.clone());
        let mut rank = vec![0; defs.len()];
        for (place, node) in by_rank.into_iter().enumerate() {
            rank[node] = u32::try_from(place).unwrap_or(u32::MAX);
        }
        let names = channels.iter().map(|spec| &spec.name);
        let names = names.chain(controls.iter().map(|spec| &spec.name));
        let mut slot_by_name: HashMap<Arc<str>, usize> =
            names.enumerate().map(|(slot, name)| (name.clone(), slot)).collect();
        slot_by_name.insert(TASKS.into(), slot_by_name.len());
        // Nodes and their triggers stand in the same order; the first node takes the input and has no name to go to.
        let branch_of = (0..defs.len()).map(|at| (at > 0).then_some(at)).collect();
        let node_by_name =
            defs.iter().enumerate().map(|(at, def)| (def.name.clone(), at)).collect();
        let empty_schema: Arc<Schema<S>> = schema;
        let erased_again = erased.clone();
        Layout {
            name,
            managed: erased.managed_values().to_vec(),
            schema: erased,
            empty: Arc::new(move || {
                Row::new(Arc::new(S::empty(&empty_schema)), erased_again.clone())
            }),
            shown: (0..channels.len()).collect(),
            channels,
            controls,
            rank,
            triggered,
            deferred,
            node_by_name,
            slot_by_name,
            branch_of,
            output,
            nests: defs.iter().any(|def| def.inner.is_some()),
            needs: needed_context(&defs),
            nodes: defs,
            single: false,
            lenient,
        }
    }
}

/// The layout while it is being laid.
struct Plan {
    nodes: Vec<NodeDecl>,
    /// For each node, the error handler that stands in for it.
    handlers: Vec<Option<usize>>,
    by_name: HashMap<Arc<str>, usize>,
    controls: Vec<ControlSpec>,
    /// For each join: its control channel, its members, its target.
    joins: Vec<(usize, Vec<Arc<str>>, Arc<str>)>,
}

impl Plan {
    fn new(
        nodes: Vec<NodeDecl>,
        defaults: NodeOptions,
        default_handler: Option<Arc<dyn Node>>,
    ) -> Self {
        let mut nodes = nodes;
        let mut handlers = vec![None; nodes.len()];
        let mut extra: Vec<NodeDecl> = Vec::new();
        let handler_decl =
            |name: Arc<str>, node: Arc<dyn Node>, like: Option<&NodeDecl>| NodeDecl {
                name,
                inner: node.subgraph(),
                node,
                options: NodeOptions {
                    retry: defaults.retry.clone(),
                    timeout: defaults.timeout,
                    ..NodeOptions::default()
                },
                handler: None,
                collector: None,
                destinations: Vec::new(),
                reads: like.and_then(|decl| decl.reads.clone()),
                writes: None,
            };
        let first = nodes.len();
        for (at, decl) in nodes.iter_mut().enumerate() {
            decl.options.retry = decl.options.retry.take().or_else(|| defaults.retry.clone());
            decl.options.timeout = decl.options.timeout.or(defaults.timeout);
            decl.options.cache = decl.options.cache.take().or_else(|| defaults.cache.clone());
            if let Some(handler) = decl.handler.take() {
                handlers[at] = Some(first + extra.len());
                let name = format!("__error_handler__{}", decl.name);
                extra.push(handler_decl(name.into(), handler, Some(decl)));
            }
        }
        if let Some(handler) = default_handler {
            let at = first + extra.len();
            for slot in handlers.iter_mut().filter(|slot| slot.is_none()) {
                *slot = Some(at);
            }
            extra.push(handler_decl("__default_error_handler__".into(), handler, None));
        }
        handlers.resize(first + extra.len(), None);
        nodes.extend(extra);
        let names = nodes.iter().enumerate().map(|(at, decl)| (decl.name.clone(), at));
        let by_name = names.collect();
        Self { nodes, handlers, by_name, controls: Vec::new(), joins: Vec::new() }
    }

    /// Control channels: the input, one trigger for each node, one for each join.
    fn lay_controls(&mut self, joins: Vec<(Vec<Arc<str>>, Arc<str>)>) {
        self.controls.push(ControlSpec { name: START.into(), kind: ControlKind::Start });
        for decl in &self.nodes {
            self.controls.push(ControlSpec {
                name: format!("branch:to:{}", decl.name).into(),
                kind: ControlKind::Branch { deferred: decl.options.defer },
            });
        }
        for (members, to) in joins.into_iter().filter(|(_, to)| &**to != END) {
            let deferred = self.by_name.get(&to).is_some_and(|at| self.nodes[*at].options.defer);
            let name = format!("join:{}:{to}", members.join("+"));
            self.joins.push((self.controls.len(), members.clone(), to));
            self.controls.push(ControlSpec {
                name: name.into(),
                kind: ControlKind::Join { members, deferred },
            });
        }
    }

    /// The control channel that triggers a node by name.
    fn branch(&self, node: &str) -> Option<usize> {
        self.by_name.get(node).map(|at| at + 1)
    }

    fn define(
        &mut self,
        edges: &[(Arc<str>, Arc<str>)],
        branches: Vec<Branch>,
        reads: impl Fn(Option<&NodeDecl>) -> Reads,
        schema: &Arc<dyn ErasedSchema>,
        input: &[usize],
        lenient: bool,
    ) -> Vec<NodeDef> {
        let mut routers: HashMap<Arc<str>, Vec<Arc<dyn Router>>> = HashMap::new();
        for branch in branches {
            let router = declared(branch.router.0, branch.targets, lenient);
            routers.entry(branch.from).or_default().push(router);
        }
        let mut outgoing: HashMap<&str, Vec<usize>> = HashMap::new();
        for (from, to) in edges {
            if let Some(control) = self.branch(to) {
                let list = outgoing.entry(from).or_default();
                if !list.contains(&control) {
                    list.push(control);
                }
            }
        }
        let mut takes = vec![false; schema.specs().len()];
        for at in input {
            takes[*at] = true;
        }
        let start = Start { schema: schema.clone(), takes, lenient };
        let mut defs = vec![NodeDef {
            name: START.into(),
            node: Arc::new(start),
            triggers: vec![0],
            trigger_names: vec![START.into()],
            id_tail: id_tail(START, &[START.into()]),
            reads: reads(None),
            edges: outgoing.remove(START).unwrap_or_default(),
            joins: Vec::new(),
            routers: routers.remove(START).unwrap_or_default(),
            options: NodeOptions::default(),
            handler: None,
            collector: None,
            hidden: true,
            inner: None,
        }];
        let mut joined: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut member_of: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (control, members, to) in &self.joins {
            joined.entry(to).or_default().push(*control);
            for (at, member) in members.iter().enumerate() {
                member_of.entry(member).or_default().push((*control, at));
            }
        }
        for (at, decl) in self.nodes.iter().enumerate() {
            let mut triggers = vec![at + 1];
            triggers.extend(joined.remove(&*decl.name).unwrap_or_default());
            let mut trigger_names: Vec<Arc<str>> =
                triggers.iter().map(|control| self.controls[*control].name.clone()).collect();
            trigger_names.sort();
            defs.push(NodeDef {
                name: decl.name.clone(),
                node: decl.node.clone(),
                id_tail: id_tail(&decl.name, &trigger_names),
                triggers,
                trigger_names,
                reads: reads(Some(decl)),
                edges: outgoing.remove(&*decl.name).unwrap_or_default(),
                joins: member_of.remove(&*decl.name).unwrap_or_default(),
                routers: routers.remove(&decl.name).unwrap_or_default(),
                options: decl.options.clone(),
                // The node that takes the input stands before all others.
                handler: self.handlers[at].map(|handler| handler + 1),
                collector: decl.collector.clone(),
                hidden: false,
                inner: decl.inner.clone(),
            });
        }
        defs
    }
}

pub(crate) fn id_tail(name: &str, triggers: &[Arc<str>]) -> String {
    format!("{name}{}{}", "__pregel_pull", triggers.concat())
}

/// A router that may only lead where it was declared to.
fn declared(router: Arc<dyn Router>, targets: Targets, lenient: bool) -> Arc<dyn Router> {
    match targets.0 {
        None => router,
        Some(targets) => Arc::new(Declared { router, targets, lenient }),
    }
}

struct Declared {
    router: Arc<dyn Router>,
    targets: Vec<(Arc<str>, Arc<str>)>,
    lenient: bool,
}

impl Declared {
    fn translate(&self, mut routes: Routes) -> Result<Routes, NodeError> {
        for goto in &mut routes.to {
            match goto {
                Some(Goto::Node(answer)) => *answer = self.target(answer)?,
                None if self.lenient => {
                    return Err(NodeError::bad_route(
                        "KeyError",
                        "a router gave no answer, which is none of its declared targets".to_owned(),
                    ));
                }
                Some(Goto::Dispatch(_)) | None => {}
            }
        }
        Ok(routes)
    }

    fn target(&self, answer: &str) -> Result<Arc<str>, NodeError> {
        let found = self.targets.iter().find(|(known, _)| &**known == answer);
        found.map(|(_, node)| node.clone()).ok_or_else(|| {
            let known: Vec<_> =
                self.targets.iter().map(|(known, _)| format!("`{known}`")).collect();
            let text = format!(
                "a router answered `{answer}`, which is none of its declared targets {}",
                known.join(", ")
            );
            NodeError::bad_route("KeyError", text)
        })
    }
}

impl Router for Declared {
    fn route_now(
        &self,
        state: &(dyn std::any::Any + Send + Sync),
    ) -> Option<Result<Routes, NodeError>> {
        Some(self.router.route_now(state)?.and_then(|routes| self.translate(routes)))
    }

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>> {
        let answer = self.router.route(context);
        let this = Self {
            router: self.router.clone(),
            targets: self.targets.clone(),
            lenient: self.lenient,
        };
        Box::pin(async move { this.translate(answer.await?) })
    }
}

/// The node that turns the input of a run into writes.
struct Start {
    schema: Arc<dyn ErasedSchema>,
    /// Whether each channel may be part of the input.
    takes: Vec<bool>,
    lenient: bool,
}

impl Start {
    fn writes(&self, start: Option<&StartValue>) -> Result<Writes, NodeError> {
        let mut writes = match start {
            None => Writes::new(),
            Some(StartValue::Writes(writes)) => writes.clone(),
            Some(StartValue::Arg(payload)) => {
                let value = payload.to_value()?;
                if !matches!(value, superstep_checkpoint::Value::Map(_)) {
                    return Err(not_an_update(START, &value));
                }
                let (writes, problems) = self.schema.parse_map(value)?;
                if !problems.is_empty() {
                    return Err(NodeError::invalid_update(problems.join("; "), None));
                }
                writes
            }
        };
        if self.lenient {
            writes.forget_unknown();
        }
        writes.list.retain(|(at, _)| self.takes[*at]);
        Ok(writes)
    }
}

impl Node for Start {
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        Box::pin(std::future::ready(self.writes(call.start).map(Output::writes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_task_ends_with_its_sorted_triggers() {
        let triggers = ["branch:to:c".into(), "join:a+b:c".into()];
        assert_eq!(id_tail("c", &triggers), "c__pregel_pullbranch:to:cjoin:a+b:c");
    }
}

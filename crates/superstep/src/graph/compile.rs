//! Compiles a declared graph to channels, nodes and triggers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use superstep_checkpoint::wire::JoinName;

use super::builder::{Branch, NodeDecl, StateGraph};
use super::compiled::CompiledGraph;
use super::hidden::{Start, declared};
use crate::engine::Compiled;
use crate::engine::NodeOptions;
use crate::engine::{
    ControlKind, ControlSpec, END, JoinSpec, Layout, NodeDef, Reads, START, TASKS, needed_context,
};
use crate::error::CompileError;
use crate::node::{Node, Router};
use crate::state::{ErasedSchema, Row, Schema, State};

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
            checkpointer: None,
            store: None,
            cache: None,
        };
        Ok(CompiledGraph::new(Arc::new(compiled), finish))
    }

    fn layout(self) -> Layout {
        let joins = self.join_specs();
        let Self {
            schema,
            name,
            nodes,
            edges,
            joins: _,
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
                        | ControlKind::Join(JoinSpec { deferred: true, .. })
                )
            })
            .map(|(at, _)| at)
            .collect();
        let joins_where = |found: fn(&JoinSpec) -> bool| {
            let joins = controls.iter().enumerate();
            let joins = joins
                .filter(|(_, spec)| matches!(&spec.kind, ControlKind::Join(join) if found(join)));
            joins.map(|(at, _)| at).collect()
        };
        let (joins, partial_joins) = (joins_where(|_| true), joins_where(JoinSpec::is_partial));
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
            joins,
            partial_joins,
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

    /// The joins of the graph, each once, with their targets.
    fn join_specs(&self) -> Vec<(JoinSpec, Arc<str>)> {
        let mut found: Vec<(JoinSpec, Arc<str>)> = Vec::new();
        for (join, to) in self.joins.iter().filter(|(_, to)| &**to != END) {
            let same = |(spec, target): &(JoinSpec, Arc<str>)| {
                target == to && spec.members == join.sources && spec.needed == join.count()
            };
            if found.iter().any(same) {
                continue;
            }
            let mut spec = JoinSpec {
                members: join.sources.clone(),
                needed: join.count(),
                deferred: self.nodes.iter().any(|node| node.name == *to && node.options.defer),
                across_runs: join.across_runs || self.lenient,
                feeders: Vec::new(),
            };
            if spec.is_partial() {
                // The node that takes the input stands before all others, and feeds nothing that is under way.
                let feeds = |feeders: HashSet<&str>| {
                    let nodes = self.nodes.iter().map(|node| feeders.contains(&*node.name));
                    std::iter::once(false).chain(nodes).collect()
                };
                spec.feeders = self.feeders(join, to).into_iter().map(feeds).collect();
            }
            found.push((spec, to.clone()));
        }
        found
    }
}

/// The layout under construction.
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
    fn lay_controls(&mut self, joins: Vec<(JoinSpec, Arc<str>)>) {
        self.controls.push(ControlSpec { name: START.into(), kind: ControlKind::Start });
        for decl in &self.nodes {
            self.controls.push(ControlSpec {
                name: format!("branch:to:{}", decl.name).into(),
                kind: ControlKind::Branch { deferred: decl.options.defer },
            });
        }
        for (spec, to) in joins {
            let name = JoinName {
                needed: spec.is_partial().then_some(spec.needed),
                sources: &spec.members.join("+"),
                target: &to,
            };
            let name = name.to_string().into();
            self.joins.push((self.controls.len(), spec.members.clone(), to));
            self.controls.push(ControlSpec { name, kind: ControlKind::Join(spec) });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_task_ends_with_its_sorted_triggers() {
        let triggers = ["branch:to:c".into(), "join:a+b:c".into()];
        assert_eq!(id_tail("c", &triggers), "c__pregel_pullbranch:to:cjoin:a+b:c");
    }
}

//! The naive engine: strings, maps and whole copies, written straight from the description of planning and applying.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::behave::{View, Written};
use super::channel::{Channel, append, max, sum};
use super::graph::{Graph, NAMES, PlannedJoin};
use super::join::Join;
use super::trace::{Clash, Output, STATE, Snapshot};

pub(super) const START: &str = "__start__";
pub(super) const TASKS: &str = "__pregel_tasks";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) path: String,
    pub(super) node: String,
    /// Triggers, of which a dispatched task has none that is a channel.
    pub(super) triggers: Option<Vec<String>>,
    pub(super) arg: Option<i64>,
}

/// What a checkpoint holds.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) versions: HashMap<String, u64>,
    pub(super) seen: HashMap<String, HashMap<String, u64>>,
    pub(super) updated: Option<BTreeSet<String>>,
    pub(super) step: i64,
}

/// A thread of the naive engine.
pub(crate) struct Model<'a> {
    pub(super) graph: &'a Graph,
    pub(super) head: Checkpoint,
    /// What tasks of the open superstep wrote, by path.
    pub(super) finished: BTreeMap<String, Output>,
    pub(super) runs: u32,
    pub(super) begun: bool,
    pub(crate) history: Vec<Snapshot>,
}

impl<'a> Model<'a> {
    /// A thread of a graph; a lenient one keeps what has arrived at joins across runs.
    pub(crate) fn new(graph: &'a Graph, lenient: bool) -> Self {
        let fold = |start: Option<Json>, fold| Channel::Fold { value: start, fold };
        let kinds = &graph.kinds;
        let mut channels = BTreeMap::from([
            ("log".to_owned(), fold(Some(json!([])), append)),
            ("sum".to_owned(), fold(Some(json!(0)), sum)),
            ("max".to_owned(), fold(None, max)),
            ("last".to_owned(), Channel::Last(None)),
            ("once".to_owned(), Channel::Ephemeral { value: None, guard: kinds.guard }),
            (
                "topic".to_owned(),
                Channel::Topic { items: Vec::new(), accumulate: kinds.accumulate },
            ),
            ("any".to_owned(), Channel::Any(None)),
            (START.to_owned(), Channel::Ephemeral { value: None, guard: true }),
            (TASKS.to_owned(), Channel::Topic { items: Vec::new(), accumulate: false }),
        ]);
        for (at, node) in graph.nodes.iter().enumerate() {
            let branch = if node.defer {
                Channel::AfterFinish { value: None, finished: false }
            } else {
                Channel::Ephemeral { value: None, guard: false }
            };
            channels.insert(format!("branch:to:{}", NAMES[at]), branch);
        }
        let mut model = Self {
            graph,
            head: Checkpoint {
                channels: BTreeMap::new(),
                versions: HashMap::new(),
                seen: HashMap::new(),
                updated: None,
                step: -2,
            },
            finished: BTreeMap::new(),
            runs: 0,
            begun: false,
            history: Vec::new(),
        };
        for planned in graph.joins() {
            let Some(target) = planned.target else { continue };
            let deferred = graph.nodes[model.index(target)].defer;
            let join = Join::new(graph, &planned, target, deferred, lenient);
            channels.insert(join_name(&planned, target), Channel::Join(join));
        }
        model.head.channels = channels;
        model
    }

    pub(super) fn index(&self, name: &str) -> usize {
        NAMES.iter().position(|known| *known == name).expect("a node of the graph")
    }

    fn triggers(&self, node: &str) -> Vec<String> {
        if node == START {
            return vec![START.to_owned()];
        }
        let joins = self.graph.joins().into_iter();
        let joins = joins.filter(|join| join.target == Some(node));
        let mut triggers = vec![format!("branch:to:{node}")];
        triggers.extend(joins.map(|join| join_name(&join, node)));
        triggers
    }

    fn nodes(&self) -> Vec<&'static str> {
        let mut all = vec![START];
        all.extend(&NAMES[..self.graph.nodes.len()]);
        all
    }

    pub(super) fn view(head: &Checkpoint) -> View {
        let values =
            STATE.iter().filter_map(|name| Some(((*name).to_owned(), head.channels[*name].get()?)));
        values.collect()
    }

    pub(super) fn plan(&self, updated: Option<&BTreeSet<String>>) -> Vec<Task> {
        self.plan_from(&self.head, updated)
    }

    fn plan_from(&self, head: &Checkpoint, updated: Option<&BTreeSet<String>>) -> Vec<Task> {
        let mut tasks = Vec::new();
        if let Channel::Topic { items, .. } = &head.channels[TASKS] {
            for (at, packet) in items.iter().enumerate() {
                tasks.push(Task {
                    path: format!("~__pregel_push, {at:010}, False"),
                    node: packet["node"].as_str().expect("a node's name").to_owned(),
                    triggers: None,
                    arg: packet["arg"].as_i64(),
                });
            }
        }
        let candidates: Vec<&str> = match updated {
            Some(updated) if !updated.is_empty() => {
                let hit = |node: &&str| self.triggers(node).iter().any(|t| updated.contains(t));
                let mut hits: Vec<_> = self.nodes().into_iter().filter(hit).collect();
                hits.sort_unstable();
                hits
            }
            _ if head.versions.is_empty() => Vec::new(),
            _ => self.nodes(),
        };
        for node in candidates {
            let triggers = self.triggers(node);
            let fires = triggers.iter().any(|trigger| {
                let version = head.versions.get(trigger).copied().unwrap_or(0);
                head.channels[trigger].is_available()
                    && head
                        .seen
                        .get(node)
                        .is_none_or(|seen| version > seen.get(trigger).copied().unwrap_or(0))
            });
            if fires {
                let path = format!("~__pregel_pull, {node}");
                tasks.push(Task {
                    path,
                    node: node.to_owned(),
                    triggers: Some(triggers),
                    arg: None,
                });
            }
        }
        tasks
    }

    pub(super) fn apply(&self, tasks: &[(Task, Output)]) -> Result<Checkpoint, Vec<Clash>> {
        let mut head = self.head.clone();
        let mut tasks: Vec<_> = tasks.iter().collect();
        tasks.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        let bump = tasks.iter().any(|(task, _)| task.node != "__input__");
        let under_way = self.under_way(&head);
        for (task, _) in &tasks {
            let seen = head.seen.entry(task.node.clone()).or_default();
            for trigger in task.triggers.iter().flatten() {
                if let Some(version) = head.versions.get(trigger) {
                    seen.insert(trigger.clone(), *version);
                }
            }
        }
        let next = head.versions.values().max().copied().unwrap_or(0) + 1;
        let consumed: BTreeSet<_> =
            tasks.iter().flat_map(|(task, _)| task.triggers.iter().flatten()).collect();
        for trigger in consumed {
            let channel = head.channels.get_mut(trigger).expect("a channel");
            if channel.consume() {
                if let Channel::Join(join) = channel {
                    let target = join.target.clone();
                    join.end_round(|node| *node != target && under_way.contains(node));
                }
                head.versions.insert(trigger.clone(), next);
            }
        }
        if tasks.iter().any(|(_, output)| output.iter().any(|(channel, _)| channel == START)) {
            for (name, channel) in &mut head.channels {
                let Channel::Join(join) = channel else { continue };
                if !join.across && join.clear() {
                    head.versions.insert(name.clone(), next);
                }
            }
        }
        let mut by_channel: BTreeMap<&str, Vec<(&Task, Written)>> = BTreeMap::new();
        for (task, output) in &tasks {
            for (channel, write) in output {
                by_channel.entry(channel).or_default().push((task, write.clone()));
            }
        }
        let mut updated = BTreeSet::new();
        let mut clashes = Vec::new();
        for (name, writes) in by_channel {
            let channel = head.channels.get_mut(name).expect("a channel");
            let values: Vec<_> = writes.iter().map(|(_, write)| write.clone()).collect();
            match channel.update(&values) {
                Ok(true) => {
                    head.versions.insert(name.to_owned(), next);
                    if channel.is_available() {
                        updated.insert(name.to_owned());
                    }
                }
                Ok(false) => {}
                Err(fault) => clashes.push(Clash {
                    channel: name.to_owned(),
                    fault,
                    writers: writes.iter().map(|(task, _)| task.node.clone()).collect(),
                    paths: writes.iter().map(|(task, _)| task.path.clone()).collect(),
                }),
            }
        }
        if !clashes.is_empty() {
            return Err(clashes);
        }
        if bump {
            for (name, channel) in &mut head.channels {
                if channel.is_available() && !updated.contains(name) {
                    let changed = channel.update(&[]).expect("nothing was written");
                    if changed {
                        head.versions.insert(name.clone(), next);
                        if channel.is_available() {
                            updated.insert(name.clone());
                        }
                    }
                }
            }
            let triggers: BTreeSet<String> =
                self.nodes().into_iter().flat_map(|node| self.triggers(node)).collect();
            if updated.is_disjoint(&triggers) {
                for (name, channel) in &mut head.channels {
                    if channel.finish() {
                        head.versions.insert(name.clone(), next);
                        if channel.is_available() {
                            updated.insert(name.clone());
                        }
                    }
                }
            }
        }
        let under_way = self.under_way(&head);
        for (name, channel) in &mut head.channels {
            let Channel::Join(join) = channel else { continue };
            if join.end_round(|node| under_way.contains(node)) {
                head.versions.insert(name.clone(), next);
            }
        }
        head.updated = Some(updated);
        Ok(head)
    }

    /// The nodes that are to run, now or when nothing else is left.
    fn under_way(&self, head: &Checkpoint) -> BTreeSet<String> {
        let mut nodes: BTreeSet<String> =
            self.plan_from(head, None).into_iter().map(|task| task.node).collect();
        for node in self.nodes() {
            let waits = |trigger: &String| match &head.channels[trigger] {
                Channel::AfterFinish { value, .. } => value.is_some(),
                Channel::Join(join) => join.is_put_off(),
                _ => false,
            };
            if self.triggers(node).iter().any(waits) {
                nodes.insert(node.to_owned());
            }
        }
        nodes
    }

    /// The joins that have some of what they need when nothing is left to run.
    pub(super) fn unfilled(&self) -> Vec<(String, Vec<String>, Vec<String>)> {
        let joins = self.head.channels.values().filter_map(|channel| match channel {
            Channel::Join(join) => join.unfilled(),
            _ => None,
        });
        joins.collect()
    }
}

pub(super) fn names(tasks: &[Task]) -> Vec<String> {
    let mut names: Vec<_> = tasks.iter().map(|task| task.node.clone()).collect();
    names.sort();
    names
}

pub(super) fn join_name(join: &PlannedJoin, target: &str) -> String {
    format!("join:{}:{}:{target}", join.needed, join.members.join("+"))
}

pub(super) fn branch(node: &str) -> (String, Written) {
    (format!("branch:to:{node}"), Written::Update(Json::Null))
}

//! The naive engine: strings, maps and whole copies, written straight from the description of planning and applying.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::behave::{Done, View, Written, behave, input, route, takes};
use super::graph::{Graph, NAMES, Place};

const START: &str = "__start__";
const TASKS: &str = "__pregel_tasks";
pub(crate) const STATE: [&str; 7] = ["log", "sum", "max", "last", "once", "topic", "any"];

#[derive(Clone, Debug)]
enum Channel {
    Last(Option<Json>),
    Any(Option<Json>),
    Ephemeral { value: Option<Json>, guard: bool },
    Topic { items: Vec<Json>, accumulate: bool },
    Fold { value: Option<Json>, fold: fn(Json, &Json) -> Option<Json> },
    AfterFinish { value: Option<Json>, finished: bool },
    Barrier { names: BTreeSet<String>, seen: BTreeSet<String> },
    BarrierAfterFinish { names: BTreeSet<String>, seen: BTreeSet<String>, finished: bool },
}

/// Why a channel did not take the writes of a superstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Concurrent,
    Guarded,
    Overwrites,
    Refused,
}

fn append(list: Json, more: &Json) -> Option<Json> {
    let all = list.as_array()?.iter().chain(more.as_array()?);
    Some(Json::Array(all.cloned().collect()))
}

fn sum(a: Json, b: &Json) -> Option<Json> {
    Some(json!(a.as_i64()? + b.as_i64()?))
}

fn max(a: Json, b: &Json) -> Option<Json> {
    match (&a, b) {
        (Json::Number(x), Json::Number(y)) => Some(json!(x.as_i64()?.max(y.as_i64()?))),
        (Json::String(x), Json::String(y)) => Some(json!(x.max(y))),
        _ => None,
    }
}

fn plain(write: &Written) -> Json {
    match write {
        Written::Update(value) | Written::Overwrite(value) => value.clone(),
    }
}

impl Channel {
    fn update(&mut self, writes: &[Written]) -> Result<bool, Fault> {
        let newest = writes.last().map(plain);
        match self {
            Self::Last(value) => match writes.len() {
                0 => Ok(false),
                1 => {
                    *value = newest;
                    Ok(true)
                }
                _ => Err(Fault::Concurrent),
            },
            Self::Any(value) => {
                let changed = value.is_some() || newest.is_some();
                *value = newest;
                Ok(changed)
            }
            Self::Ephemeral { guard: true, .. } if writes.len() > 1 => Err(Fault::Guarded),
            Self::Ephemeral { value, .. } => {
                let changed = value.is_some() || newest.is_some();
                *value = newest;
                Ok(changed)
            }
            Self::Topic { items, accumulate } => {
                let mut changed = false;
                if !*accumulate {
                    changed = !items.is_empty();
                    items.clear();
                }
                for write in writes {
                    match plain(write) {
                        Json::Array(list) => items.extend(list),
                        item => items.push(item),
                    }
                }
                Ok(changed
                    || writes
                        .iter()
                        .any(|write| !matches!(plain(write), Json::Array(list) if list.is_empty())))
            }
            Self::Fold { value, fold } => {
                let overwrites =
                    writes.iter().filter(|write| matches!(write, Written::Overwrite(_)));
                match overwrites.count() {
                    0 => {}
                    1 => {
                        *value =
                            writes.iter().find(|w| matches!(w, Written::Overwrite(_))).map(plain);
                        return Ok(true);
                    }
                    _ => return Err(Fault::Overwrites),
                }
                for write in writes {
                    *value = Some(match value.take() {
                        None => plain(write),
                        Some(old) => fold(old, &plain(write)).ok_or(Fault::Refused)?,
                    });
                }
                Ok(!writes.is_empty())
            }
            Self::AfterFinish { value, finished } => {
                if writes.is_empty() {
                    return Ok(false);
                }
                *finished = false;
                *value = newest;
                Ok(true)
            }
            Self::Barrier { seen, .. } | Self::BarrierAfterFinish { seen, .. } => {
                let mut changed = false;
                for write in writes {
                    let name = plain(write).as_str().expect("a node's name").to_owned();
                    changed |= seen.insert(name);
                }
                Ok(changed)
            }
        }
    }

    fn get(&self) -> Option<Json> {
        match self {
            Self::Last(value)
            | Self::Any(value)
            | Self::Ephemeral { value, .. }
            | Self::Fold { value, .. } => value.clone(),
            Self::AfterFinish { value, finished } => value.clone().filter(|_| *finished),
            Self::Topic { items, .. } => (!items.is_empty()).then(|| Json::Array(items.clone())),
            Self::Barrier { names, seen } => (names == seen).then_some(Json::Null),
            Self::BarrierAfterFinish { names, seen, finished } => {
                (*finished && names == seen).then_some(Json::Null)
            }
        }
    }

    fn is_available(&self) -> bool {
        self.get().is_some()
    }

    fn consume(&mut self) -> bool {
        match self {
            Self::AfterFinish { value, finished } if *finished => {
                *value = None;
                *finished = false;
                true
            }
            Self::Barrier { names, seen } if names == seen => {
                seen.clear();
                true
            }
            Self::BarrierAfterFinish { names, seen, finished } if *finished && names == seen => {
                seen.clear();
                *finished = false;
                true
            }
            _ => false,
        }
    }

    fn finish(&mut self) -> bool {
        match self {
            Self::AfterFinish { value: Some(_), finished } if !*finished => {
                *finished = true;
                true
            }
            Self::BarrierAfterFinish { names, seen, finished } if !*finished && names == seen => {
                *finished = true;
                true
            }
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Task {
    path: String,
    node: String,
    /// Triggers, of which a dispatched task has none that is a channel.
    triggers: Option<Vec<String>>,
    arg: Option<i64>,
}

type Output = Vec<(String, Written)>;

/// What a checkpoint holds.
#[derive(Clone, Debug)]
struct Checkpoint {
    channels: BTreeMap<String, Channel>,
    versions: HashMap<String, u64>,
    seen: HashMap<String, HashMap<String, u64>>,
    updated: Option<BTreeSet<String>>,
    step: i64,
}

/// Writes that a superstep could not apply.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) channel: String,
    pub(crate) fault: Fault,
    /// The names of the nodes that wrote to the channel.
    pub(crate) writers: Vec<String>,
    paths: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum End {
    Done(View),
    RecursionLimit(u64),
    Failed {
        node: String,
        text: Option<String>,
    },
    /// One of these is reported.
    Clashed {
        step: i64,
        clashes: Vec<Clash>,
    },
}

/// What a stream shows of one superstep, without the order in which tasks finish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) starts: Vec<String>,
    pub(crate) updates: Vec<String>,
    pub(crate) ends: Vec<String>,
    pub(crate) values: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) step: i64,
    pub(crate) source: &'static str,
    pub(crate) values: View,
    pub(crate) next: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) groups: Vec<Group>,
    pub(crate) executed: Vec<String>,
    pub(crate) end: End,
}

/// A thread of the naive engine.
pub(crate) struct Model<'a> {
    graph: &'a Graph,
    head: Checkpoint,
    /// What tasks of the open superstep wrote, by path.
    finished: BTreeMap<String, Output>,
    runs: u32,
    begun: bool,
    pub(crate) history: Vec<Snapshot>,
}

pub(crate) fn executed(step: i64, node: &str, arg: Option<i64>) -> String {
    format!("{step} {node} {arg:?}")
}

pub(crate) fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

impl<'a> Model<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
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
        for (members, target) in graph.joins() {
            let Some(target) = target else { continue };
            let names: BTreeSet<String> = members.iter().map(|name| (*name).to_owned()).collect();
            let seen = BTreeSet::new();
            let deferred = graph.nodes[model.index(target)].defer;
            let join = if deferred {
                Channel::BarrierAfterFinish { names, seen, finished: false }
            } else {
                Channel::Barrier { names, seen }
            };
            channels.insert(join_name(&members, target), join);
        }
        model.head.channels = channels;
        model
    }

    fn index(&self, name: &str) -> usize {
        NAMES.iter().position(|known| *known == name).expect("a node of the graph")
    }

    fn triggers(&self, node: &str) -> Vec<String> {
        if node == START {
            return vec![START.to_owned()];
        }
        let joins = self.graph.joins().into_iter();
        let joins = joins.filter(|(_, target)| *target == Some(node));
        let mut triggers = vec![format!("branch:to:{node}")];
        triggers.extend(joins.map(|(members, _)| join_name(&members, node)));
        triggers
    }

    fn nodes(&self) -> Vec<&'static str> {
        let mut all = vec![START];
        all.extend(&NAMES[..self.graph.nodes.len()]);
        all
    }

    fn view(head: &Checkpoint) -> View {
        let values =
            STATE.iter().filter_map(|name| Some(((*name).to_owned(), head.channels[*name].get()?)));
        values.collect()
    }

    fn plan(&self, updated: Option<&BTreeSet<String>>) -> Vec<Task> {
        let head = &self.head;
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

    fn apply(&self, tasks: &[(Task, Output)]) -> Result<Checkpoint, Vec<Clash>> {
        let mut head = self.head.clone();
        let mut tasks: Vec<_> = tasks.iter().collect();
        tasks.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        let bump = tasks.iter().any(|(task, _)| task.node != "__input__");
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
            if head.channels.get_mut(trigger).expect("a channel").consume() {
                head.versions.insert(trigger.clone(), next);
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
        head.updated = Some(updated);
        Ok(head)
    }

    /// What a task writes: its update, where its command goes, its edges, and what its routers say.
    fn run_task(&self, task: &Task) -> Result<Output, Option<String>> {
        let view = Self::view(&self.head);
        if task.node == START {
            let payload = self.head.channels[START].get().expect("an input");
            let payload = payload.as_object().expect("a map").clone();
            let mut output: Output =
                payload.into_iter().map(|(key, value)| (key, Written::Update(value))).collect();
            for to in &self.graph.start {
                output.push(branch(self.graph.name(*to)));
            }
            let routers = self.graph.start_router.as_slice();
            return self.follow(routers, false, output);
        }
        let index = self.index(&task.node);
        let node = &self.graph.nodes[index];
        let (writes, goto) = match behave(self.graph, index, &view, task.arg, self.runs) {
            Done::Failed(text) => return Err(Some(text)),
            Done::Wrote(writes, goto) => (writes, goto),
        };
        let mut output: Output =
            writes.into_iter().map(|(name, write)| (name.to_owned(), write)).collect();
        output.extend(goto.into_iter().filter_map(|place| self.go(place)));
        for to in node.edges.iter().flatten() {
            output.push(branch(self.graph.name(*to)));
        }
        for (members, target) in self.graph.joins() {
            if let (true, Some(target)) = (members.contains(&&*task.node), target) {
                output.push((join_name(&members, target), Written::Update(json!(task.node))));
            }
        }
        self.follow(&node.routers, node.silent, output)
    }

    fn follow(
        &self,
        routers: &[super::graph::Router],
        silent: bool,
        mut output: Output,
    ) -> Result<Output, Option<String>> {
        if routers.is_empty() {
            return Ok(output);
        }
        let mut own = self.head.clone();
        for name in STATE {
            let writes: Vec<_> =
                output.iter().filter(|(to, _)| to == name).map(|(_, w)| w.clone()).collect();
            if !writes.is_empty() {
                own.channels.get_mut(name).expect("a channel").update(&writes).map_err(|_| None)?;
            }
        }
        let view = Self::view(&own);
        for router in routers {
            let places = route(router, silent, &view);
            output.extend(places.into_iter().filter_map(|place| self.go(place)));
        }
        Ok(output)
    }

    fn go(&self, place: Place) -> Option<(String, Written)> {
        match place {
            Place::End => None,
            Place::Node(node) => Some(branch(self.graph.name(node))),
            Place::Dispatch(node, arg) => {
                let packet = json!({ "node": self.graph.name(node), "arg": arg });
                Some((TASKS.to_owned(), Written::Update(packet)))
            }
        }
    }

    fn save(
        &mut self,
        head: Checkpoint,
        step: i64,
        source: &'static str,
        made: &mut Vec<Snapshot>,
    ) {
        self.head = Checkpoint { step, ..head };
        self.finished.clear();
        made.push(Snapshot {
            step,
            source,
            values: Self::view(&self.head),
            next: names(&self.plan(None)),
        });
    }

    /// Runs the thread with an input, or goes on where it is.
    pub(crate) fn run(&mut self, number: Option<i64>) -> Trace {
        let mut made = Vec::new();
        let trace = self.drive(number, &mut made);
        if self.graph.exit {
            made.drain(..made.len().saturating_sub(1));
        }
        self.history.extend(made);
        self.runs += 1;
        trace
    }

    fn drive(&mut self, number: Option<i64>, made: &mut Vec<Snapshot>) -> Trace {
        let mut groups = Vec::new();
        let mut executed_ = Vec::new();
        let mut step = self.head.step + 1;
        let stop = step + self.graph.limit as i64 + 1;
        match number {
            None => {
                assert!(self.begun, "the harness goes on only where something was");
                let values = Some(text(&Self::view(&self.head)));
                groups.push(Group { values, ..Group::default() });
            }
            Some(number) => {
                let mut tasks: Vec<(Task, Output)> = self
                    .plan(self.head.updated.as_ref())
                    .into_iter()
                    .map(|task| (task, Vec::new()))
                    .collect();
                let accept = Task {
                    path: "~".to_owned(),
                    node: "__input__".to_owned(),
                    triggers: None,
                    arg: None,
                };
                let payload = (START.to_owned(), Written::Update(input(number)));
                tasks.push((accept, vec![payload]));
                let head = self.apply(&tasks).expect("input clashes with nothing");
                self.save(head, step, "input", made);
                self.begun = true;
                step += 1;
            }
        }
        let end = loop {
            if step > stop {
                break End::RecursionLimit(self.graph.limit);
            }
            let tasks = self.plan(self.head.updated.as_ref());
            if tasks.is_empty() {
                break End::Done(Self::view(&self.head));
            }
            let mut group = Group::default();
            let failed = self.superstep(step, &tasks, &mut group, &mut executed_);
            if let Some((node, text)) = failed {
                groups.push(group);
                break End::Failed { node, text };
            }
            let all: Vec<_> = tasks
                .into_iter()
                .map(|task| {
                    let output = self.finished[&task.path].clone();
                    (task, output)
                })
                .collect();
            match self.apply(&all) {
                Err(clashes) => {
                    groups.push(group);
                    break End::Clashed { step, clashes };
                }
                Ok(head) => {
                    let shown =
                        |name: &&str| head.updated.as_ref().is_some_and(|u| u.contains(*name));
                    if STATE.iter().any(shown) {
                        group.values = Some(text(&Self::view(&head)));
                    }
                    if group != Group::default() {
                        groups.push(group);
                    }
                    self.save(head, step, "loop", made);
                }
            }
            step += 1;
        };
        for group in &mut groups {
            group.sort();
        }
        executed_.sort();
        Trace { groups, executed: executed_, end }
    }

    /// Runs the tasks that have not finished, at most so many at a time, until one fails.
    fn superstep(
        &mut self,
        step: i64,
        tasks: &[Task],
        group: &mut Group,
        executed_: &mut Vec<String>,
    ) -> Option<(String, Option<String>)> {
        let view = Self::view(&self.head);
        for task in tasks.iter().filter(|task| task.node != START) {
            let input = task.arg.map_or_else(|| json!(view), |arg| json!(arg));
            group.starts.push(format!("{} {}", task.node, text(&input)));
            if let Some(output) = self.finished.get(&task.path) {
                group.updates.push(format!("cached {} {}", task.node, update_of(output)));
            }
        }
        let open: Vec<_> =
            tasks.iter().filter(|task| !self.finished.contains_key(&task.path)).collect();
        let mut waiting = open.into_iter();
        let mut running: Vec<(u64, &Task)> = Vec::new();
        let mut now = 0;
        loop {
            while running.len() < self.graph.concurrency.unwrap_or(usize::MAX) {
                let Some(task) = waiting.next() else { break };
                let mut takes_ = 0;
                if task.node != START {
                    executed_.push(executed(step, &task.node, task.arg));
                    let index = self.index(&task.node);
                    takes_ = takes(self.graph, self.runs, step, index, task.arg);
                }
                running.push((now + takes_, task));
            }
            let first = running.iter().enumerate().min_by_key(|(_, (until, _))| *until)?.0;
            let (until, task) = running.remove(first);
            now = until;
            match self.run_task(task) {
                Err(text) => {
                    group.ends.push(format!("failed {}", task.node));
                    return Some((task.node.clone(), text));
                }
                Ok(output) => {
                    if task.node != START {
                        group.updates.push(format!("{} {}", task.node, update_of(&output)));
                        group.ends.push(format!("{} {}", task.node, result_of(&output)));
                    }
                    self.finished.insert(task.path.clone(), output);
                }
            }
        }
    }

    /// Takes back what was written to a channel that did not take it, so that the writers run again.
    pub(crate) fn take_back(&mut self, clash: &Clash) {
        for path in &clash.paths {
            self.finished.remove(path);
        }
    }

    /// What a look at the thread shows: values with what finished tasks wrote, and the tasks that have not.
    pub(crate) fn look(&self) -> (i64, View, Vec<String>) {
        let planned = self.plan(None);
        let done = |task: &&Task| self.finished.contains_key(&task.path);
        let finished: Vec<_> = planned
            .iter()
            .filter(done)
            .map(|task| (task.clone(), self.finished[&task.path].clone()))
            .collect();
        let open: Vec<_> = planned.iter().filter(|task| !done(task)).cloned().collect();
        let shown = if finished.is_empty() { Err(Vec::new()) } else { self.apply(&finished) };
        let values = shown.map_or_else(|_| Self::view(&self.head), |head| Self::view(&head));
        (self.head.step, values, names(&open))
    }
}

impl Group {
    pub(crate) fn sort(&mut self) {
        self.starts.sort();
        self.updates.sort();
        self.ends.sort();
    }
}

fn names(tasks: &[Task]) -> Vec<String> {
    let mut names: Vec<_> = tasks.iter().map(|task| task.node.clone()).collect();
    names.sort();
    names
}

fn join_name(members: &[&str], target: &str) -> String {
    format!("join:{}:{target}", members.join("+"))
}

fn branch(node: &str) -> (String, Written) {
    (format!("branch:to:{node}"), Written::Update(Json::Null))
}

/// The writes of a task to the state, as a stream shows them.
fn shown(output: &Output) -> Vec<(&String, Json)> {
    let state = output.iter().filter(|(name, _)| STATE.contains(&&**name));
    let value = |write: &Written| match write {
        Written::Update(value) => value.clone(),
        Written::Overwrite(value) => json!({ "__overwrite__": value }),
    };
    state.map(|(name, write)| (name, value(write))).collect()
}

fn update_of(output: &Output) -> String {
    let shown = shown(output);
    let mut names = BTreeSet::new();
    let repeated = shown.iter().any(|(name, _)| !names.insert(*name));
    if shown.is_empty() {
        "null".to_owned()
    } else if repeated {
        let maps: Vec<_> =
            shown.iter().map(|(name, value)| BTreeMap::from([(name, value)])).collect();
        text(&maps)
    } else {
        text(&shown.into_iter().collect::<BTreeMap<_, _>>())
    }
}

fn result_of(output: &Output) -> String {
    let mut by_name: BTreeMap<&String, Vec<Json>> = BTreeMap::new();
    for (name, value) in shown(output) {
        by_name.entry(name).or_default().push(value);
    }
    let folded = by_name.into_iter().map(|(name, mut values)| match values.len() {
        1 => (name, values.remove(0)),
        _ => (name, json!({ "$writes": values })),
    });
    text(&folded.collect::<BTreeMap<_, _>>())
}

//! Running a thread of the naive engine: what tasks write, superstep by superstep, and what a look at it shows.

use serde_json::json;

use super::behave::{Done, View, Written, behave, input, route, takes};
use super::graph::{Place, Router};
use super::model::{Checkpoint, Model, START, TASKS, Task, branch, join_name, names};
use super::trace::{
    Clash, End, Group, Output, STATE, Snapshot, Trace, executed, result_of, text, update_of,
};

impl Model<'_> {
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
        for join in self.graph.joins() {
            if let (true, Some(target)) = (join.members.contains(&&*task.node), join.target) {
                output.push((join_name(&join, target), Written::Update(json!(task.node))));
            }
        }
        self.follow(&node.routers, node.silent, output)
    }

    fn follow(
        &self,
        routers: &[Router],
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

    /// Runs the thread with an input, or continues where it is.
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
                let unfilled = self.unfilled();
                if !unfilled.is_empty() {
                    break End::Unfilled(unfilled);
                }
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

//! What a thread is, said as plainly as possible: every checkpoint is kept whole, with the work that was done after it.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Node, Plan, inside};

/// What has become of a node that was to run after a checkpoint.
#[derive(Clone, Debug, Default)]
struct Work {
    answers: Vec<i64>,
    asked: Option<String>,
    wrote: Option<String>,
    inner: Option<Inside>,
}

/// Where the subgraph is.
#[derive(Clone, Debug)]
struct Inside {
    at: usize,
    log: Vec<String>,
    answers: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
struct Checkpoint {
    log: Vec<String>,
    /// The input that is still to be taken.
    input: Option<String>,
    /// The nodes that edges led to.
    marked: BTreeSet<usize>,
    /// The members of the join that have arrived.
    arrived: BTreeSet<usize>,
    work: BTreeMap<usize, Work>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// With these questions, in the order of their tasks.
    Asks(Vec<String>),
    Updated,
    /// There was nothing to run.
    Nothing,
    /// The answers do not fit the open questions.
    Refused,
    /// An answer is not of the type that the node takes.
    Misfit,
}

/// What can be seen of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) log: Vec<String>,
    pub(crate) next: Vec<String>,
    pub(crate) questions: Vec<String>,
}

pub(crate) struct Model<'a> {
    plan: &'a Plan,
    /// In the order in which they were made; the last one is the head.
    checkpoints: Vec<Checkpoint>,
    /// How often each node ran.
    pub(crate) ran: BTreeMap<String, u32>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self { plan, checkpoints: Vec::new(), ran: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.checkpoints.len()
    }

    /// The place of a checkpoint of the past; `None` if it is the head.
    fn past(&self, back: Option<usize>) -> Option<usize> {
        back.filter(|back| *back > 0).map(|back| self.checkpoints.len() - 1 - back)
    }

    fn joined(&self, checkpoint: &Checkpoint) -> Option<usize> {
        let (members, target) = self.plan.join?;
        members.iter().all(|member| checkpoint.arrived.contains(member)).then_some(target)
    }

    /// The nodes that are to run after a checkpoint, finished or not.
    fn pending(&self, checkpoint: &Checkpoint) -> BTreeSet<usize> {
        let mut pending = checkpoint.marked.clone();
        pending.extend(self.joined(checkpoint));
        pending
    }

    fn unfinished(&self, checkpoint: &Checkpoint) -> Vec<usize> {
        let finished =
            |node: &usize| checkpoint.work.get(node).is_some_and(|work| work.wrote.is_some());
        self.pending(checkpoint).into_iter().filter(|node| !finished(node)).collect()
    }

    /// Takes away what triggered a node.
    fn settle(&self, checkpoint: &mut Checkpoint, node: usize) {
        if self.joined(checkpoint) == Some(node) {
            checkpoint.arrived.clear();
        }
        checkpoint.marked.remove(&node);
    }

    /// Writes what a node wrote, and follows its edges.
    fn write(&self, checkpoint: &mut Checkpoint, node: usize, text: String) {
        checkpoint.log.push(text);
        checkpoint.marked.extend(&self.plan.nodes[node].edges);
        if self.plan.join.is_some_and(|(members, _)| members.contains(&node)) {
            checkpoint.arrived.insert(node);
        }
    }

    /// The checkpoint that a superstep leads to in which these nodes wrote something.
    fn after(&self, mut base: Checkpoint, wrote: Vec<(usize, String)>) -> Checkpoint {
        for (node, _) in &wrote {
            self.settle(&mut base, *node);
        }
        base.work.clear();
        for (node, text) in wrote {
            self.write(&mut base, node, text);
        }
        base
    }

    /// What finished nodes wrote, in the order of their names.
    fn finished(&self, checkpoint: &Checkpoint) -> Vec<(usize, String)> {
        let wrote = |node| checkpoint.work.get(&node).and_then(|work| work.wrote.clone());
        let order = self.plan.by_name().into_iter();
        order.filter_map(|node| Some((node, wrote(node)?))).collect()
    }

    pub(crate) fn input(&mut self, back: Option<usize>, text: String) -> End {
        let at = self.past(back).unwrap_or(self.checkpoints.len().wrapping_sub(1));
        let mut base = self.checkpoints.get(at).cloned().unwrap_or_default();
        // Open work is dropped.
        for node in self.pending(&base) {
            self.settle(&mut base, node);
        }
        base.work.clear();
        base.input = Some(text);
        self.checkpoints.push(base);
        self.run()
    }

    pub(crate) fn go(&mut self, back: Option<usize>) -> End {
        if self.checkpoints.is_empty() {
            return End::Nothing;
        }
        if let Some(at) = self.past(back) {
            let mut fork = self.checkpoints[at].clone();
            fork.work.clear();
            self.checkpoints.push(fork);
        }
        self.run()
    }

    pub(crate) fn update(&mut self, back: Option<usize>, node: usize, text: String) -> End {
        let base = self.checkpoints.last().cloned().unwrap_or_default();
        let next = match self.past(back) {
            // A branch begins with the update, and the nodes beside the one it stands for are still to run.
            Some(at) => {
                let mut base = self.checkpoints[at].clone();
                base.input = None;
                if !self.pending(&base).contains(&node) {
                    base.marked.clear();
                }
                self.after(base, vec![(node, text)])
            }
            None => {
                let takes_over = self.pending(&base).contains(&node);
                let mut wrote = self.finished(&base);
                wrote.retain(|(finished, _)| *finished != node);
                wrote.push((node, text));
                let mut base = base;
                if !takes_over {
                    base.marked.clear();
                }
                self.after(base, wrote)
            }
        };
        self.checkpoints.push(next);
        End::Updated
    }

    /// Answers open questions of the head.
    pub(crate) fn answer(&mut self, answers: &[(String, i64)]) -> End {
        let head = self.checkpoints.last_mut().expect("a question was asked");
        for (question, answer) in answers {
            let asked = |work: &&mut Work| work.asked.as_ref() == Some(question);
            let work = head.work.values_mut().find(asked).expect("an open question");
            match &mut work.inner {
                Some(inside) => inside.answers.push(*answer),
                None => work.answers.push(*answer),
            }
        }
        self.run()
    }

    /// The one question that is open is answered with something that does not fit: it is asked again, and that is all.
    pub(crate) fn misfit(&mut self) -> End {
        self.run();
        End::Misfit
    }

    fn run(&mut self) -> End {
        loop {
            let mut head = self.checkpoints.last().expect("a thread that has begun").clone();
            if let Some(input) = head.input.take() {
                head.log.push(input);
                let first = (0..self.plan.nodes.len()).filter(|node| self.plan.nodes[*node].first);
                head.marked = first.collect();
                self.checkpoints.push(head);
                continue;
            }
            if self.pending(&head).is_empty() {
                return End::Done;
            }
            for node in self.unfinished(&head) {
                let work = head.work.entry(node).or_default();
                execute(&self.plan.nodes[node], work, head.log.len(), &mut self.ran);
            }
            *self.checkpoints.last_mut().expect("the head") = head.clone();
            if !self.unfinished(&head).is_empty() {
                return End::Asks(self.asked(&head, self.plan.by_name()));
            }
            let wrote = self.finished(&head);
            let next = self.after(head, wrote);
            self.checkpoints.push(next);
        }
    }

    fn asked(&self, checkpoint: &Checkpoint, order: Vec<usize>) -> Vec<String> {
        let unfinished = self.unfinished(checkpoint);
        let asking = order.into_iter().filter(|node| unfinished.contains(node));
        asking.filter_map(|node| checkpoint.work.get(&node)?.asked.clone()).collect()
    }

    fn names(
        &self,
        checkpoint: &Checkpoint,
        nodes: impl IntoIterator<Item = usize>,
    ) -> Vec<String> {
        if checkpoint.input.is_some() {
            return vec!["__start__".to_owned()];
        }
        nodes.into_iter().map(|node| self.plan.nodes[node].name.to_owned()).collect()
    }

    /// The head, with what finished nodes wrote.
    pub(crate) fn seen(&self) -> Seen {
        let Some(head) = self.checkpoints.last() else { return Seen::default() };
        let mut log = head.log.clone();
        log.extend(self.finished(head).into_iter().map(|(_, text)| text));
        let questions = self.asked(head, (0..self.plan.nodes.len()).collect());
        Seen { log, next: self.names(head, self.unfinished(head)), questions }
    }

    /// All checkpoints, newest first, each without what was done after it.
    pub(crate) fn history(&self) -> Vec<(Vec<String>, Vec<String>)> {
        let checkpoints = self.checkpoints.iter().rev();
        checkpoints.map(|c| (c.log.clone(), self.names(c, self.pending(c)))).collect()
    }
}

/// Asks the next of so many questions, if it is not answered.
fn ask(name: &str, asks: usize, answers: &[i64], seen: usize) -> Option<String> {
    (answers.len() < asks).then(|| question(name, answers.len(), seen))
}

pub(crate) fn question(name: &str, at: usize, seen: usize) -> String {
    format!("{name}?{at}@{seen}")
}

pub(crate) fn entry(name: &str, answers: &[i64], seen: usize) -> String {
    format!("{name}{answers:?}@{seen}")
}

fn execute(node: &Node, work: &mut Work, seen: usize, ran: &mut BTreeMap<String, u32>) {
    let mut count = |name: String| *ran.entry(name).or_default() += 1;
    count(node.name.to_owned());
    work.asked = ask(node.name, node.asks, &work.answers, seen);
    if work.asked.is_some() {
        return;
    }
    let own = entry(node.name, &work.answers, seen);
    let Some(asks) = &node.inner else {
        work.wrote = Some(own);
        return;
    };
    let begin = || Inside { at: 0, log: vec![own], answers: Vec::new() };
    let inner = work.inner.get_or_insert_with(begin);
    while inner.at < asks.len() {
        let name = inside(node.name, inner.at);
        count(name.clone());
        work.asked = ask(&name, asks[inner.at], &inner.answers, inner.log.len());
        if work.asked.is_some() {
            return;
        }
        let line = entry(&name, &inner.answers, inner.log.len());
        inner.log.push(line);
        inner.answers.clear();
        inner.at += 1;
    }
    work.wrote = Some(format!("{}{:?}", node.name, inner.log));
}

//! The same graphs and conversations on the engine, compared with the model after every operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use superstep::checkpoint::InterruptId;
use superstep::prelude::*;
use superstep::{CompiledGraph, Join, Thread};

use super::model::{End, Model, Seen, entry, question};
use super::plan::{Node, Op, Plan, inside};

#[derive(State, Clone, Debug, Default)]
struct Talk {
    #[channel(reduce = Append)]
    log: Vec<String>,
}

#[derive(Clone, Default)]
struct Ran(Arc<Mutex<BTreeMap<String, u32>>>);

impl Ran {
    fn count(&self, name: &str) {
        *self.0.lock().expect("no panic").entry(name.to_owned()).or_default() += 1;
    }
}

async fn ask(task: &Task, name: &str, asks: usize, seen: usize) -> Vec<i64> {
    let mut answers = Vec::new();
    for at in 0..asks {
        answers.push(task.interrupt(question(name, at, seen)).await);
    }
    answers
}

fn inner_graph(node: &Node, asks: &[usize], ran: &Ran) -> CompiledGraph<Talk> {
    let mut graph = StateGraph::<Talk>::new();
    for (at, asks) in asks.iter().copied().enumerate() {
        let (name, ran) = (inside(node.name, at), ran.clone());
        graph = graph.add_node(name.clone(), move |talk: Arc<Talk>, task: Task| {
            let (name, ran) = (name.clone(), ran.clone());
            async move {
                ran.count(&name);
                let answers = ask(&task, &name, asks, talk.log.len()).await;
                Talk::update().log([entry(&name, &answers, talk.log.len())])
            }
        });
        let name = inside(node.name, at);
        graph = match at {
            0 => graph.add_edge(START, &*name),
            _ => graph.add_edge(&*inside(node.name, at - 1), &*name),
        };
    }
    graph.compile().expect("a row of nodes")
}

fn add_node(graph: StateGraph<Talk>, node: &Node, ran: &Ran) -> StateGraph<Talk> {
    let (name, asks, ran) = (node.name, node.asks, ran.clone());
    let inner = node.inner.as_ref().map(|asks| inner_graph(node, asks, &ran));
    let leave = move |inner: Talk| Talk::update().log([format!("{name}{:?}", inner.log)]);
    match inner {
        // A graph is a node as it is; one that asks first calls the graph itself.
        Some(inner) if asks == 0 => {
            let enter = move |talk: &Talk| {
                ran.count(name);
                Talk::update().log([entry(name, &[], talk.log.len())])
            };
            graph.add_node(name, inner.as_node(enter, leave))
        }
        inner => graph.add_node(name, move |talk: Arc<Talk>, task: Task| {
            let (ran, inner) = (ran.clone(), inner.clone());
            async move {
                ran.count(name);
                let answers = ask(&task, name, asks, talk.log.len()).await;
                let own = entry(name, &answers, talk.log.len());
                Ok::<_, RunError>(match inner {
                    Some(inner) => leave(task.invoke(&inner, Talk::update().log([own])).await?),
                    None => Talk::update().log([own]),
                })
            }
        }),
    }
}

fn build(plan: &Plan, ran: &Ran) -> CompiledGraph<Talk> {
    let mut graph = StateGraph::<Talk>::new();
    for node in &plan.nodes {
        graph = add_node(graph, node, ran);
    }
    for node in &plan.nodes {
        if node.first {
            graph = graph.add_edge(START, node.name);
        }
        for to in &node.edges {
            graph = graph.add_edge(node.name, plan.nodes[*to].name);
        }
    }
    if let Some((members, target)) = plan.join {
        let join = Join::all(members.map(|at| plan.nodes[at].name)).across_runs();
        graph = graph.add_edge(join, plan.nodes[target].name);
    }
    graph.compile().expect("a graph").with_checkpointer(MemorySaver::new())
}

fn texts(questions: &[superstep::checkpoint::Interrupt]) -> Vec<String> {
    questions.iter().map(|q| q.value.as_str().unwrap_or("no text").to_owned()).collect()
}

/// How a run ended, and the state it ended with.
fn ended(outcome: Result<Outcome<Talk>, RunError>) -> Result<(End, Option<Vec<String>>), String> {
    Ok(match outcome {
        Ok(Outcome::Done(talk)) => (End::Done, Some(talk.log)),
        Ok(Outcome::Interrupted(asked)) => {
            (End::Asks(texts(&asked)), asked.state().map(|state| state.log.clone()))
        }
        Err(RunError::EmptyInput(_)) => (End::Nothing, None),
        Err(RunError::Resume { message, .. }) if message.contains("does not fit") => {
            (End::Misfit, None)
        }
        Err(RunError::Resume { .. }) => (End::Refused, None),
        other => return Err(format!("the run ended with {other:?}")),
    })
}

struct Conversation<'a> {
    model: Model<'a>,
    plan: &'a Plan,
    thread: Thread<Talk>,
    ran: Ran,
    /// The questions that are open, with their ids.
    open: Vec<(String, InterruptId)>,
    /// What was open at this many checkpoints: a question that stays keeps its id.
    opened_at: usize,
    answered: Option<InterruptId>,
    /// Inputs, updates and answers are numbered, so that no two are the same.
    number: i64,
}

macro_rules! same {
    ($what:expr, $model:expr, $engine:expr) => {
        let (model, engine) = (&$model, &$engine);
        if model != engine {
            return Err(format!("{}\n  model:  {model:?}\n  engine: {engine:?}", $what));
        }
    };
}

impl Conversation<'_> {
    fn next(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    /// A checkpoint of the history, if there is one that far back.
    fn back(&self, back: Option<usize>) -> Option<usize> {
        back.filter(|_| self.model.len() > 0).map(|back| back % self.model.len())
    }

    async fn at(&self, back: Option<usize>) -> Result<Thread<Talk>, String> {
        let Some(back) = back else { return Ok(self.thread.clone()) };
        let history = self.thread.get_state_history().raw().await;
        let history = history.map_err(|error| format!("the history: {error:?}"))?;
        Ok(self.thread.at(&history[back]))
    }

    /// The open questions whose bits are set.
    fn chosen(&self, bits: u8) -> Vec<(String, InterruptId)> {
        let open = self.open.iter().enumerate();
        open.filter(|(at, _)| bits & (1 << at) != 0).map(|(_, open)| open.clone()).collect()
    }

    async fn step(&mut self, op: &Op) -> Result<(), String> {
        let (expected, outcome) = match op {
            Op::Input(back) => {
                let (back, text) = (self.back(*back), format!("in {}", self.next()));
                let thread = self.at(back).await?;
                let outcome = thread.invoke(Talk::update().log([text.clone()])).await;
                (self.model.input(back, text), outcome)
            }
            Op::Go(back) => {
                let back = self.back(*back);
                let outcome = self.at(back).await?.invoke(()).await;
                (self.model.go(back), outcome)
            }
            Op::Update(back, node) => {
                let (back, text) = (self.back(*back), format!("up {}", self.next()));
                let node = node % self.plan.nodes.len();
                let update = Talk::update().log([text.clone()]);
                let thread = self.at(back).await?;
                let updated = thread.update_state(update).as_node(self.plan.nodes[node].name).await;
                updated.map_err(|error| format!("the update: {error:?}"))?;
                self.model.update(back, node, text);
                return Ok(());
            }
            Op::Answer => {
                let answer = self.next();
                let outcome = self.thread.resume(answer).await;
                let expected = match &self.open[..] {
                    [(question, id)] => {
                        self.answered = Some(id.clone());
                        self.model.answer(&[(question.clone(), answer)])
                    }
                    _ => End::Refused,
                };
                (expected, outcome)
            }
            Op::AnswerSome(bits) => {
                let chosen = self.chosen(*bits);
                if chosen.is_empty() {
                    return Ok(());
                }
                let answers: Vec<_> =
                    chosen.into_iter().map(|(q, id)| (q, id, self.next())).collect();
                let given = answers.iter().map(|(_, id, answer)| (id.clone(), *answer));
                let outcome = self.thread.resume_all(given).await;
                self.answered = answers.last().map(|(_, id, _)| id.clone());
                let answers: Vec<_> =
                    answers.into_iter().map(|(q, _, answer)| (q, answer)).collect();
                (self.model.answer(&answers), outcome)
            }
            Op::AnswerUnknown(bits) | Op::AnswerAgain(bits) => {
                let mut ids: Vec<_> = self.chosen(*bits).into_iter().map(|(_, id)| id).collect();
                ids.push(match (op, &self.answered) {
                    (Op::AnswerAgain(_), Some(id)) => id.clone(),
                    (Op::AnswerAgain(_), None) => return Ok(()),
                    _ => InterruptId::new("0123456789abcdef0123456789abcdef"),
                });
                let outcome = self.thread.resume_all(ids.into_iter().map(|id| (id, -1))).await;
                (End::Refused, outcome)
            }
            Op::Misfit => {
                let [_] = &self.open[..] else { return Ok(()) };
                let outcome = self.thread.resume("no number").await;
                (self.model.misfit(), outcome)
            }
        };
        let (end, log) = ended(outcome)?;
        same!("how the run ended", expected, end);
        if let Some(log) = log {
            same!("the state the run ended with", self.model.seen().log, log);
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), String> {
        let failed = |error| format!("a look at the thread: {error:?}");
        let state = self.thread.get_state().await.map_err(failed)?;
        let seen = Seen {
            log: state.state().log.clone(),
            next: state.next.iter().map(ToString::to_string).collect(),
            questions: texts(&state.interrupts),
        };
        same!("what get_state shows", self.model.seen(), seen);
        let history: Vec<_> =
            self.thread.get_state_history().try_collect().await.map_err(failed)?;
        let history: Vec<_> = history
            .iter()
            .map(|past| {
                let next: Vec<_> = past.next.iter().map(ToString::to_string).collect();
                (past.state().log.clone(), next)
            })
            .collect();
        same!("the history", self.model.history(), history);
        same!("how often each node ran", self.model.ran, *self.ran.0.lock().expect("no panic"));
        let ids = state.interrupts.iter().map(|question| question.id.clone());
        let open: Vec<_> = seen.questions.into_iter().zip(ids).collect();
        if self.opened_at == history.len() {
            for (question, id) in &open {
                let before = self.open.iter().find(|(before, _)| before == question);
                if before.is_some_and(|(_, before)| before != id) {
                    return Err(format!("the question {question} got another id"));
                }
            }
        }
        (self.open, self.opened_at) = (open, history.len());
        Ok(())
    }
}

/// Has the conversation, and compares after every operation.
pub(crate) async fn converse(plan: &Plan, ops: &[Op]) -> Result<(), String> {
    let ran = Ran::default();
    let thread = build(plan, &ran).thread("t");
    let model = Model::new(plan);
    let mut conversation = Conversation {
        model,
        plan,
        thread,
        ran,
        open: Vec::new(),
        opened_at: 0,
        answered: None,
        number: 0,
    };
    for (at, op) in ops.iter().enumerate() {
        let said = |error: String| format!("operation {at}, {op:?}: {error}");
        conversation.step(op).await.map_err(said)?;
        conversation.look().await.map_err(said)?;
    }
    Ok(())
}

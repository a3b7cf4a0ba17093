use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use superstep_checkpoint::{CheckpointId, Error, Value};

use super::input::{Input, InputKind};
use crate::engine::CheckpointRef;
use crate::engine::{
    self, Context, Finish, How, Layout, Life, Opening, Replay, Run, Sink, StartValue, Task, drive,
};
use crate::engine::{At, Breakpoints, Compiled};
use crate::engine::{Durability, RunControl};
use crate::engine::{Interrupted, Outcome};
use crate::error::{RunError, nearest};
use crate::graph::{CompiledGraph, Shape, returned};
use crate::state::State;

/// Options of one run.
#[derive(Debug, Default)]
pub(crate) struct RunOptions {
    pub(crate) recursion_limit: Option<u64>,
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) durability: Durability,
    pub(crate) context: Context,
    pub(crate) control: Option<RunControl>,
    pub(crate) before: Option<At>,
    pub(crate) after: Option<At>,
    pub(crate) output: Option<Vec<Arc<str>>>,
    pub(crate) metadata: BTreeMap<String, Value>,
}

/// A graph, and where it runs.
pub(crate) struct Target<S: State, O> {
    pub(crate) graph: CompiledGraph<S, O>,
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) at: Option<CheckpointRef>,
}

impl<S: State, O> Clone for Target<S, O> {
    fn clone(&self) -> Self {
        Self { graph: self.graph.clone(), thread: self.thread.clone(), at: self.at.clone() }
    }
}

impl<S: State, O> std::fmt::Debug for Target<S, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("thread", &self.thread).field("at", &self.at).finish()
    }
}

impl<S: State, O> Target<S, O> {
    pub(crate) fn new(graph: CompiledGraph<S, O>, thread: Option<Arc<str>>) -> Self {
        Self { graph, thread, at: None }
    }

    /// The channels that were asked for by name.
    pub(crate) fn output_keys(&self, names: &[Arc<str>]) -> Result<Arc<[usize]>, RunError> {
        let layout = &self.graph.inner().layout;
        let known = || layout.channels.iter().map(|spec| &*spec.name);
        let found = names.iter().map(|name| {
            known().position(|known| known == &**name).ok_or_else(|| {
                let near = nearest(name, known());
                RunError::Invalid(format!("the graph has no channel `{name}` to return{near}"))
            })
        });
        Ok(found.collect::<Result<Vec<_>, _>>()?.into())
    }

    /// Drives the graph to completion.
    pub(crate) async fn drive(
        self,
        input: Input,
        options: RunOptions,
        sink: Option<Arc<Sink>>,
        keys: Arc<[usize]>,
    ) -> Result<Outcome<O>, RunError> {
        let shape = self.graph.finish;
        outcome(self.finish(input, options, sink, keys).await?, shape)
    }

    /// Drives the graph to completion, which is returned without the type of the state.
    pub(crate) async fn finish(
        self,
        input: Input,
        options: RunOptions,
        sink: Option<Arc<Sink>>,
        keys: Arc<[usize]>,
    ) -> Result<Finish, RunError> {
        let control = options.control.unwrap_or_default();
        let _running = control.enter();
        let graph = self.graph.inner().clone();
        let context = self.graph.context.extended(&options.context);
        context.check(&graph.layout)?;
        let input = begin_with(&graph, input)?;
        let (at, places) = self.address();
        let replay = self.replay(&input, &places);
        // Where subgraphs were is stored with what the run does, as the reference has it.
        let places = if places.len() > 1 { places } else { BTreeMap::new() };
        let mut metadata = self.graph.metadata.clone();
        metadata.extend(options.metadata);
        let run = Run {
            thread: self.thread,
            keeps: graph.checkpointer.is_some(),
            store: graph.store.clone(),
            cache: graph.cache.clone(),
            context,
            control,
            durability: options.durability,
            sink,
            ids: self.graph.ids.clone(),
            metadata,
            max_concurrency: options.max_concurrency,
            recursion_limit: options.recursion_limit,
            answers: Mutex::default(),
            renamed: Mutex::default(),
            ended: Mutex::default(),
            replay,
            life: Life::default(),
            due: Mutex::default(),
        };
        check_breakpoints(&graph.layout, options.before.iter().chain(&options.after))?;
        let breakpoints = Breakpoints {
            before: options.before.unwrap_or_else(|| graph.breakpoints.before.clone()),
            after: options.after.unwrap_or_else(|| graph.breakpoints.after.clone()),
        };
        let opening = Opening {
            run: Arc::new(run),
            checkpointer: graph.checkpointer.clone(),
            ns: "".into(),
            shown: None,
            parents: Arc::new(places),
            at,
            input,
            breakpoints,
            caller: None,
            keys,
            graph,
        };
        drive(opening).await
    }

    /// The checkpoints that are addressed: of the graph itself, and of its subgraphs.
    fn address(&self) -> (Option<CheckpointId>, BTreeMap<String, CheckpointId>) {
        let Some(at) = &self.at else { return (None, BTreeMap::new()) };
        let mut places = at.parents.clone();
        places.extend(at.id.map(|id| (at.ns.to_string(), id)));
        (places.get("").copied(), places)
    }

    /// How subgraphs find their past, if the run begins at a checkpoint and does not answer its
    /// questions.
    fn replay(
        &self,
        input: &engine::Input,
        places: &BTreeMap<String, CheckpointId>,
    ) -> Option<Replay> {
        let at = self.at.as_ref()?;
        let answers =
            matches!(input, engine::Input::Command(command) if !command.resume.is_nothing());
        let inside = places.iter().filter(|(ns, _)| !ns.is_empty());
        let addressed = inside.map(|(ns, id)| (ns.clone(), *id)).collect();
        (!answers).then(|| Replay {
            before: OnceLock::new(),
            visited: Mutex::default(),
            goes_inside: !at.ns.is_empty(),
            addressed,
        })
    }
}

/// Runs a graph on another thread, with everything else that the run of this task has.
pub(crate) async fn run_beside<S: State, O>(
    task: &Task,
    graph: &CompiledGraph<S, O>,
    thread: Arc<str>,
    input: Input,
) -> Result<Outcome<O>, RunError> {
    let superstep = &task.inner.superstep;
    let around = &superstep.setting.run;
    if around.thread.as_ref() == Some(&thread) {
        return Err(RunError::Invalid(format!(
            "node `{}` runs on thread `{thread}` itself; call a graph that is to be part of it with `invoke`",
            task.name()
        )));
    }
    let inner = graph.inner().clone();
    let context = around.context.extended(&graph.context);
    context.check(&inner.layout)?;
    let checkpointer =
        superstep.setting.checkpointer.clone().or_else(|| inner.checkpointer.clone());
    let run = Run {
        thread: Some(thread),
        keeps: checkpointer.is_some(),
        store: around.store.clone().or_else(|| inner.store.clone()),
        cache: around.cache.clone().or_else(|| inner.cache.clone()),
        context,
        control: around.control.clone(),
        durability: around.durability,
        sink: around.sink.clone(),
        ids: around.ids.clone(),
        metadata: around.metadata.clone(),
        max_concurrency: around.max_concurrency,
        recursion_limit: around.recursion_limit,
        answers: Mutex::default(),
        renamed: Mutex::default(),
        ended: Mutex::default(),
        replay: None,
        life: Life::default(),
        due: Mutex::default(),
    };
    let opening = Opening {
        run: Arc::new(run),
        checkpointer,
        ns: "".into(),
        shown: Some(task.namespace_shared()),
        parents: Arc::default(),
        at: None,
        input: begin_with(&inner, input)?,
        breakpoints: inner.breakpoints.clone(),
        caller: None,
        keys: inner.layout.output.clone().into(),
        graph: inner,
    };
    outcome(drive(opening).await?, graph.finish)
}

/// An input that is not data is refused before anything is stored.
pub(crate) fn refused_input(error: &Error) -> RunError {
    RunError::InvalidUpdate {
        message: format!("the input cannot be serialized: {error}"),
        code: None,
    }
}

fn begin_with(graph: &Compiled, input: Input) -> Result<engine::Input, RunError> {
    Ok(match input.kind {
        InputKind::Nothing => engine::Input::Nothing,
        InputKind::Wake => engine::Input::Wake,
        InputKind::Start(start) => engine::Input::Value(check_input(graph, start)?),
        InputKind::Command(command) => engine::Input::Command(command),
        InputKind::Refused(error) => return Err(refused_input(&error)),
    })
}

fn outcome<S: State, O>(finish: Finish, shape: Shape<S, O>) -> Result<Outcome<O>, RunError> {
    let Finish { head, how, questions } = finish;
    let cells = head.row.cells().clone();
    drop(head);
    let state = || cells.downcast().expect("a graph ends with its own state type");
    Ok(match how {
        How::Done | How::ForParent(_) => Outcome::Done(returned(shape(state())?)?),
        How::Interrupted => Outcome::Interrupted(Interrupted { questions, state: shape(state())? }),
        How::Drained(reason) => Outcome::Drained(reason),
    })
}

/// A breakpoint at a node that does not exist would never hold.
fn check_breakpoints<'a>(
    layout: &Layout,
    places: impl Iterator<Item = &'a At>,
) -> Result<(), RunError> {
    let mut names = places.flat_map(At::names);
    let unknown = names.find(|name| !layout.lenient && layout.node(name).is_none());
    unknown.map_or(Ok(()), |name| {
        let near = nearest(name, layout.nodes.iter().map(|def| &*def.name));
        Err(RunError::Invalid(format!("a breakpoint names the unknown node `{name}`{near}")))
    })
}

/// Data that is to be the input of a typed graph is checked before anything is stored.
fn check_input(graph: &Compiled, start: StartValue) -> Result<StartValue, RunError> {
    let layout = &graph.layout;
    if layout.single || layout.lenient {
        return Ok(start);
    }
    let StartValue::Arg(payload) = &start else { return Ok(start) };
    let value = payload.to_value()?;
    let (writes, mut problems) =
        layout.schema.parse_map(value).map_err(|error| RunError::InvalidUpdate {
            message: format!("the input is not an update: {error}"),
            code: Some(crate::error::Code::InvalidGraphNodeReturnValue),
        })?;
    problems.extend(writes.unknown_keys().map(|key| {
        let near = nearest(key, layout.channels.iter().map(|spec| &*spec.name));
        format!("the input has the unknown key `{key}`{near}")
    }));
    if problems.is_empty() {
        Ok(StartValue::Writes(writes))
    } else {
        Err(RunError::InvalidUpdate { message: problems.join("; "), code: None })
    }
}

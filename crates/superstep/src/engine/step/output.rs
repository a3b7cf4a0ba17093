//! What a task writes: its update, where its command goes, its edges, and what its routers say.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use futures_util::FutureExt;
use smallvec::SmallVec;
use superstep_checkpoint::Blob;

use crate::engine::kernel::fold::{Undos, fold_writes, overwrite_counts_alone};
use crate::engine::kernel::head::{Mark, Packet, Write};
use crate::engine::kernel::layout::{END, NodeDef, START};
use crate::engine::step::attempt::{TaskResult, run_watched};
use crate::engine::task::handle::{Suspension, Task};
use crate::error::{Code, NodeError, nearest, panic_text};
use crate::node::{BoxFuture, Goto, Output, RouteContext, Router, Routes};
use crate::state::{Row, UpdateProblem, WriteValue, Writes};

/// Why a task whose node has returned has no writes: one of its routers failed, or asked something.
pub(crate) enum Unwritten {
    Failed(NodeError),
    Suspended(Box<Suspension>),
}

impl From<NodeError> for Unwritten {
    fn from(error: NodeError) -> Self {
        Self::Failed(error)
    }
}

/// The writes of a task, or what makes them when a router has to be waited for.
pub(crate) enum Written<'a> {
    Now(Vec<Write>),
    Later(Pin<Box<dyn Future<Output = Result<Vec<Write>, Unwritten>> + Send + 'a>>),
}

/// The writes of a task: its update, where its command goes, its edges, and what its routers say.
pub(crate) fn writes_of<'a>(
    task: &'a Task,
    node: usize,
    row: &'a mut Row,
    mut output: Output,
    mut writes: Vec<Write>,
) -> Result<Written<'a>, NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    let def = &layout.nodes[node];
    if output.writes.is_unchecked() {
        output.writes = output.writes.resolved(&*layout.schema).map_err(|unfit| match unfit {
            UpdateProblem::NotAnUpdate(found) => not_an_update(task.name(), &found),
            UpdateProblem::Problems(text) => NodeError::invalid_update(text, None),
        })?;
    }
    refuse_unknown(task, &output)?;
    let mut commanded = Vec::new();
    for goto in output.goto {
        go(task, goto, Mark::Null, &mut commanded)?;
    }
    if def.routers.is_empty() {
        gather(def, output.writes, commanded, &mut writes);
        return Ok(Written::Now(writes));
    }
    let seen = RoutedState::new(task, row, &output.writes)?;
    let mut asked = SmallVec::<[Asked; 1]>::new();
    for router in &def.routers {
        asked.push(ask(task, &**router, seen.row())?);
    }
    if asked.iter().any(|asked| matches!(asked, Asked::Awaited(_))) {
        return Ok(Written::Later(Box::pin(async move {
            let mut routes = SmallVec::<[Routes; 1]>::new();
            for asked in asked {
                routes.push(match asked {
                    Asked::Answered(routes) => routes?,
                    Asked::Awaited(future) => await_router(task, future).await?,
                });
            }
            drop(seen);
            gather(def, output.writes, commanded, &mut writes);
            for routes in routes {
                follow(task, routes, &mut writes)?;
            }
            Ok(writes)
        })));
    }
    drop(seen);
    gather(def, output.writes, commanded, &mut writes);
    for asked in asked {
        if let Asked::Answered(routes) = asked {
            follow(task, routes?, &mut writes)?;
        }
    }
    Ok(Written::Now(writes))
}

/// Lists the writes of a task in their order. What its routers say comes after them.
fn gather(def: &NodeDef, state: Writes, mut commanded: Vec<Write>, writes: &mut Vec<Write>) {
    let others = commanded.len() + def.edges.len() + def.joins.len() + def.routers.len();
    writes.reserve(state.list.len() + others);
    writes.extend(state.list.into_iter().map(|(at, value)| Write::State(at, value)));
    writes.append(&mut commanded);
    writes.extend(def.edges.iter().map(|control| Write::Branch(*control, Mark::Null)));
    writes.extend(def.joins.iter().map(|(control, member)| Write::Join(*control, *member)));
}

fn refuse_unknown(task: &Task, output: &Output) -> Result<(), NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    for key in output.writes.unknown_keys() {
        if layout.lenient {
            tracing::warn!(%key, node = task.name(), "ignored an unknown key of an update");
            continue;
        }
        let near = nearest(key, layout.channels.iter().map(|spec| &*spec.name));
        return Err(NodeError::invalid_update(
            format!("node `{}` wrote to the unknown channel `{key}`{near}", task.name()),
            None,
        ));
    }
    Ok(())
}

/// Turns a place to go to into a write.
pub(crate) fn go(
    task: &Task,
    goto: Goto,
    mark: Mark,
    writes: &mut Vec<Write>,
) -> Result<(), NodeError> {
    match goto_write(&task.inner.superstep.setting.layout, goto, mark) {
        Ok(write) => writes.extend(write),
        Err(text) => {
            return Err(NodeError::invalid_update(format!("node `{}` {text}", task.name()), None));
        }
    }
    Ok(())
}

/// The write that leads to a place; nothing if it leads nowhere.
pub(crate) fn goto_write(
    layout: &crate::engine::kernel::layout::Layout,
    goto: Goto,
    mark: Mark,
) -> Result<Option<Write>, String> {
    let unknown = |name: &str, verb: &str| {
        if layout.lenient {
            tracing::warn!(node = name, "ignored an unknown node");
            return Ok(());
        }
        let near = nearest(name, layout.nodes.iter().map(|def| &*def.name));
        Err(format!("{verb} the unknown node `{name}`{near}"))
    };
    match goto {
        Goto::Node(name) if &*name == END => Ok(None),
        Goto::Node(name) => match layout.node(&name).and_then(|node| layout.branch_of[node]) {
            Some(control) => Ok(Some(Write::Branch(control, mark))),
            None => {
                unknown(&name, "goes to")?;
                // What the reference stores for it is stored, too.
                Ok(Some(Write::Unknown(format!("branch:to:{name}").into(), Blob::null())))
            }
        },
        Goto::Dispatch(dispatch) if &*dispatch.node == END => {
            Err("dispatched to the end of the graph, which runs nothing".to_owned())
        }
        Goto::Dispatch(dispatch) => {
            if layout.node(&dispatch.node).is_none() {
                unknown(&dispatch.node, "dispatched to")?;
            }
            let packet =
                Packet { node: dispatch.node, arg: dispatch.arg, timeout: dispatch.timeout };
            Ok(Some(Write::Send(packet)))
        }
    }
}

fn follow(task: &Task, routes: Routes, writes: &mut Vec<Write>) -> Result<(), NodeError> {
    for goto in routes.to {
        let answered = goto.filter(|goto| !matches!(goto, Goto::Node(name) if &**name == START));
        let Some(goto) = answered else {
            let text = format!("a router of node `{}` gave no destination", task.name());
            return Err(NodeError::bad_route("ValueError", text));
        };
        go(task, goto, Mark::Null, writes)?;
    }
    Ok(())
}

/// What routers look at: the state with the writes of their own node applied, and no other writes.
///
/// If there is no other reference to the state, the writes are made in place and taken back afterwards; a superstep with one
/// task then costs what it writes, not what the state holds.
enum RoutedState<'a> {
    InPlace(Tried<'a>),
    Own(Row),
}

impl<'a> RoutedState<'a> {
    fn new(task: &Task, row: &'a mut Row, writes: &Writes) -> Result<Self, NodeError> {
        if row.is_alone() && writes.unknown().is_none() {
            let mut tried = Tried { row, taken: SmallVec::new() };
            write_own(task, tried.row, writes, &mut tried.taken)?;
            return Ok(Self::InPlace(tried));
        }
        let mut own = row.clone();
        write_own(task, &mut own, writes, &mut SmallVec::new())?;
        if let Some(unknown) = writes.unknown() {
            own.open().keep_unknown(unknown.clone());
        }
        Ok(Self::Own(own))
    }

    fn row(&self) -> &Row {
        match self {
            Self::InPlace(tried) => tried.row,
            Self::Own(row) => row,
        }
    }
}

/// Writes that are taken back on drop.
struct Tried<'a> {
    row: &'a mut Row,
    taken: Undos,
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        let mut open = self.row.open();
        for (at, taken) in self.taken.drain(..).rev() {
            open.take_back(at, taken);
        }
    }
}

fn ask(task: &Task, router: &dyn Router, row: &Row) -> Result<Asked, NodeError> {
    let start = AssertUnwindSafe(|| match router.route_now(&**row.cells()) {
        Some(routes) => Asked::Answered(routes),
        None => {
            let context = RouteContext { cells: row.cells().clone(), task: task.clone() };
            Asked::Awaited(router.route(context))
        }
    });
    catch_unwind(start).map_err(|panic| router_panicked(task, &*panic))
}

fn router_panicked(task: &Task, panic: &(dyn std::any::Any + Send)) -> NodeError {
    NodeError::panicked(task.name(), &format!("in a router: {}", panic_text(panic)))
}

async fn await_router(
    task: &Task,
    future: BoxFuture<Result<Routes, NodeError>>,
) -> Result<Routes, Unwritten> {
    let caught = AssertUnwindSafe(future).catch_unwind();
    let future = Box::pin(async { caught.await.map_err(|panic| router_panicked(task, &*panic))? });
    match run_watched(future, task, None).await? {
        TaskResult::Returned(routes) => Ok(routes),
        TaskResult::Suspended(suspension) => Err(Unwritten::Suspended(suspension)),
    }
}

enum Asked {
    Answered(Result<Routes, NodeError>),
    Awaited(BoxFuture<Result<Routes, NodeError>>),
}

/// Makes the writes of one node to a row, and says how to take them back; also after a failure, those that were made.
fn write_own(
    task: &Task,
    row: &mut Row,
    writes: &Writes,
    taken: &mut Undos,
) -> Result<(), NodeError> {
    let made = catch_unwind(AssertUnwindSafe(|| try_write_own(task, row, writes, taken)));
    made.unwrap_or_else(|panic| {
        let text = format!("in a reducer: {}", panic_text(&*panic));
        Err(NodeError::panicked(task.name(), &text))
    })
}

fn try_write_own(
    task: &Task,
    row: &mut Row,
    writes: &Writes,
    taken: &mut Undos,
) -> Result<(), NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    let mut open = row.open();
    for (nth, (at, _)) in writes.list.iter().enumerate() {
        let own = || writes.list.iter().filter(|(other, _)| other == at).map(|(_, write)| write);
        if writes.list[..nth].iter().any(|(other, _)| other == at) {
            continue;
        }
        let spec = &layout.channels[*at];
        let overwrites = |write: &WriteValue| matches!(write, WriteValue::Overwrite(_));
        let overwritten = overwrite_counts_alone(spec.kind) && own().any(overwrites);
        let folded =
            fold_writes(&mut open, *at, spec.kind, own().cloned(), overwritten, Some(&mut *taken));
        folded.map_err(|error| {
            let text = format!("channel `{}` did not take a write: {error}", spec.name);
            NodeError::bad_route("TypeError", text)
        })?;
    }
    Ok(())
}

/// What a node of the dynamic kind returned that is no update.
pub(crate) fn not_an_update(node: &str, found: &superstep_checkpoint::Value) -> NodeError {
    NodeError::invalid_update(
        format!("node `{node}` returned {found}, which is no update; return a map of channels"),
        Some(Code::InvalidGraphNodeReturnValue),
    )
}

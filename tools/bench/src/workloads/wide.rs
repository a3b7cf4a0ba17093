//! A state with many channels, of which each superstep writes a few.

use superstep::prelude::*;
use superstep::state::{Schema, Writes};

use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

const NODES: usize = 10;
/// How many channels a node writes, each node others.
const WRITTEN: usize = 10;

/// A struct of `N` texts, as a derive would describe it. Written by hand, since nobody wants to read 1,200 fields.
#[derive(Clone)]
struct Wide<const N: usize> {
    texts: Vec<String>,
}

fn get<const I: usize, const N: usize>(wide: &Wide<N>) -> &String {
    &wide.texts[I]
}

fn get_mut<const I: usize, const N: usize>(wide: &mut Wide<N>) -> &mut String {
    &mut wide.texts[I]
}

type Access<const N: usize> = (fn(&Wide<N>) -> &String, fn(&mut Wide<N>) -> &mut String);

/// How to get at the fields of some hundreds, ten by ten.
macro_rules! hundreds {
    ($all:ident, $($hundred:literal)*) => {$(
        hundreds!(@tens $all, $hundred, 0 1 2 3 4 5 6 7 8 9);
    )*};
    (@tens $all:ident, $hundred:literal, $($ten:literal)*) => {$(
        hundreds!(@ones $all, $hundred, $ten, 0 1 2 3 4 5 6 7 8 9);
    )*};
    (@ones $all:ident, $hundred:literal, $ten:literal, $($one:literal)*) => {
        let ten: [Access<_>; 10] = [$((
            get::<{ $hundred * 100 + $ten * 10 + $one }, _>,
            get_mut::<{ $hundred * 100 + $ten * 10 + $one }, _>,
        )),*];
        $all.extend_from_slice(&ten);
    };
}

fn declare<const N: usize>(schema: &mut Schema<Wide<N>>, access: Vec<Access<N>>)
where
    Wide<N>: State,
{
    for (key, (get, get_mut)) in access.into_iter().enumerate() {
        schema.last(name(key), get, get_mut);
    }
}

impl State for Wide<300> {
    type Update = Writes;

    fn channels(schema: &mut Schema<Self>) {
        let mut access = Vec::new();
        hundreds!(access, 0 1 2);
        declare(schema, access);
    }

    fn empty(_: &Arc<Schema<Self>>) -> Self {
        Self { texts: vec![String::new(); 300] }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

impl State for Wide<1200> {
    type Update = Writes;

    fn channels(schema: &mut Schema<Self>) {
        let mut access = Vec::new();
        hundreds!(access, 0 1 2 3 4 5 6 7 8 9 10 11);
        declare(schema, access);
    }

    fn empty(_: &Arc<Schema<Self>>) -> Self {
        Self { texts: vec![String::new(); 1200] }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

fn name(key: usize) -> String {
    format!("k{key:04}")
}

fn text(key: usize, step: usize) -> String {
    format!("text {key:>8} {step:>6}")
}

/// Ten supersteps over 300 or 1,200 channels.
pub(super) async fn wide(setting: &mut Setting, channels: usize) -> Result<Measured, Failure> {
    match channels {
        300 => steps::<300>(setting).await,
        1200 => steps::<1200>(setting).await,
        other => Err(format!("a wide state has 300 or 1,200 channels, not {other}").into()),
    }
}

async fn steps<const N: usize>(setting: &mut Setting) -> Result<Measured, Failure>
where
    Wide<N>: State<Update = Writes>,
{
    let mut graph = StateGraph::<Wide<N>>::new();
    for step in 0..NODES {
        let from = if step == 0 { START.to_owned() } else { format!("n{}", step - 1) };
        let node = move |wide: Arc<Wide<N>>| {
            let first = step * WRITTEN;
            assert_eq!(wide.texts[first], text(first, 0), "nobody has written this yet");
            written(first..first + WRITTEN, step + 1)
        };
        graph = graph.add_node(format!("n{step}"), node).add_edge(from, format!("n{step}"));
    }
    let graph = setting.equip(graph.compile()?);
    let mut measured = Measured { units: NODES as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let input = written(0..N, 0);
        let began = setting.start().await?;
        done(setting.invoke(&graph, input).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

fn written(keys: std::ops::Range<usize>, step: usize) -> Writes {
    let mut writes = Writes::new();
    for key in keys {
        writes.push::<String>(key, text(key, step));
    }
    writes
}

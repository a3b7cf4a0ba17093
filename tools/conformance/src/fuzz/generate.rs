//! Random cases in the format of `conformance/FORMAT.md`.

mod body;
mod graph;
mod keys;
mod script;

use serde_json::{Map, Value as Json, json};

use super::rng::Rng;

/// Which constructs a case may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// None in which we differ from the reference on purpose.
    Plain,
    /// All.
    Wild,
}

impl Profile {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "plain" => Ok(Self::Plain),
            "wild" => Ok(Self::Wild),
            _ => Err(format!("`{text}` is no profile: plain or wild")),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Wild => "wild",
        }
    }
}

/// What a case has. Drawn first, so that a plain case never has two things that only together are a construct in which
/// we differ.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
struct Features {
    wild: bool,
    /// Nodes side by side.
    parallel: bool,
    interrupts: bool,
    /// Failures that end a run.
    failures: bool,
    /// Failures that are retried.
    retries: bool,
    handlers: bool,
    /// Errors of recorded calls that are caught.
    catches: bool,
    calls: bool,
    loops: bool,
    dispatches: bool,
    commands: bool,
    joins: bool,
    defer: bool,
    caches: bool,
    timeouts: bool,
    store: bool,
    deltas: bool,
    ephemeral: bool,
    untracked: bool,
    drains: bool,
    exit: bool,
    updates: bool,
    travel: bool,
    /// How deep subgraphs go.
    depth: usize,
    /// Subgraphs with a memory of their own.
    own: bool,
    /// Subgraphs without a memory.
    forgetful: bool,
    functional: bool,
    /// Whether input is given once only.
    single_turn: bool,
    topics: bool,
    /// Whether questions are answered by id; the reference keeps an answer without one for questions that come later (F3).
    by_id: bool,
    /// Commands as input.
    command_input: bool,
    /// Whether calls ask.
    asking_calls: bool,
    /// Breakpoints.
    breaks: bool,
}

impl Features {
    fn draw(rng: &mut Rng, profile: Profile) -> Self {
        let wild = profile == Profile::Wild;
        let mut has = Self {
            wild,
            parallel: rng.percent(60),
            interrupts: rng.percent(50),
            failures: rng.percent(25),
            retries: rng.percent(25),
            handlers: rng.percent(20),
            catches: rng.percent(20),
            calls: rng.percent(35),
            loops: rng.percent(40),
            dispatches: rng.percent(40),
            commands: rng.percent(40),
            joins: rng.percent(40),
            defer: rng.percent(20),
            caches: rng.percent(12),
            timeouts: rng.percent(4),
            store: rng.percent(8),
            deltas: rng.percent(35),
            ephemeral: rng.percent(25),
            untracked: rng.percent(25),
            drains: rng.percent(20),
            exit: rng.percent(35),
            updates: rng.percent(45),
            travel: rng.percent(45),
            depth: rng.weighted(&[50, 30, 12, 8]),
            own: rng.percent(40),
            forgetful: rng.percent(25),
            functional: rng.percent(15),
            single_turn: false,
            topics: rng.percent(20),
            by_id: rng.percent(50),
            command_input: rng.percent(40),
            asking_calls: rng.percent(70),
            breaks: rng.percent(35),
        };
        if !wild {
            has.make_plain(rng);
        }
        has
    }

    /// Takes away what only together is a construct in which we differ; `docs/divergences.md` has the rules.
    fn make_plain(&mut self, rng: &mut Rng) {
        if self.interrupts {
            // An answer that is kept for a task which failed (F3, F4, F10), a handler beside a question (F16), and calls
            // whose failure was caught (F31).
            self.failures = false;
            self.handlers = false;
            self.catches = false;
        }
        if self.failures {
            self.catches = false;
            self.handlers &= !self.parallel;
        }
        if self.exit {
            // It stores untracked values of tasks that have finished (F19).
            self.untracked = false;
            // The reference adds a checkpoint for the deltas of a run that stores at its end.
            self.deltas = false;
        }
        if (self.several() || self.loops) && (self.interrupts || self.failures) {
            // A look shows what finished siblings wrote (F14).
            self.ephemeral = false;
            self.topics = false;
        }
        if self.interrupts || self.failures || self.breaks || self.drains || self.own {
            // What a command leads to is shown at once (F15), and a graph with a memory takes its input.
            self.command_input = false;
        }
        // An update takes the place of a task, also of a deferred one and of one that a join leads to.
        self.defer &= !self.updates;
        self.joins &= !self.updates;
        // Durability without a checkpointer crashes (F9); barriers and lists need `sync`.
        self.forgetful &= !self.joins && !self.topics;
        // The reference lists a question of a call in a subgraph twice (F7).
        self.asking_calls &= self.depth == 0;
        if self.own {
            // A graph with a memory takes each input once.
            self.parallel = false;
            self.loops = false;
            self.updates = false;
            self.single_turn = true;
        }
        if self.depth > 0 {
            // A further attempt finds the subgraph where it was (F6).
            self.retries &= rng.percent(50);
            // Under `exit`, a subgraph that was drained or out of steps continues where it was.
            self.drains &= !self.exit;
            self.loops &= !self.exit;
            // A question beside a graph that was drained is shown, and so is an error handler that has finished (F16).
            self.drains &= !self.interrupts;
            self.handlers &= !self.drains;
        }
        if self.interrupts {
            self.forgetful = false;
        }
    }

    /// Whether several tasks may stand side by side.
    fn several(&self) -> bool {
        self.parallel || self.dispatches
    }
}

/// What is generated so far.
pub(super) struct Generator {
    rng: Rng,
    has: Features,
    graphs: Map<String, Json>,
    tasks: Map<String, Json>,
    /// The values of questions that nodes of any graph ask.
    questions: Vec<String>,
    /// Nodes of the outermost graph.
    nodes: Vec<String>,
    /// Names of nodes whose state can be looked into.
    holders: Vec<String>,
    /// State keys of the outermost graph.
    keys: Vec<keys::Key>,
}

/// The case with this number.
pub(super) fn case(profile: Profile, seed: u64, index: usize) -> Json {
    let mut rng = Rng::of_case(seed, index);
    let has = Features::draw(&mut rng, profile);
    let mut generator = Generator {
        rng,
        has,
        graphs: Map::new(),
        tasks: Map::new(),
        questions: Vec::new(),
        nodes: Vec::new(),
        holders: Vec::new(),
        keys: Vec::new(),
    };
    if generator.has.calls || generator.has.functional {
        generator.make_tasks();
    }
    if generator.has.functional {
        generator.functional("main");
    } else {
        generator.main_graph();
    }
    let script = generator.script();
    let mut case = json!({
        "name": format!("{}_{seed}_{index}", profile.name()),
        "about": "A random case.",
        "loose": true,
    });
    if generator.has.timeouts || generator.has.failures {
        case["engine"] = json!("async");
    }
    if !generator.tasks.is_empty() {
        case["tasks"] = Json::Object(generator.tasks);
    }
    case["graphs"] = Json::Object(generator.graphs);
    case["script"] = Json::Array(script);
    case
}

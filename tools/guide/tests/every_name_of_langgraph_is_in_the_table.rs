//! Somebody who comes from LangGraph looks up a name he knows, and finds ours, or why there is none. The names are those that the
//! reference itself calls public.
//!
//! Needs a Python that has LangGraph, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and the output says so.

use std::process::Command;

/// Names that stand for types of other names, and say nothing to a user.
const PASSED_OVER: [&str; 3] = ["Conn", "BasePostgresSaver", "PoolConfig"];

const NAMES: &str = "
import importlib
modules = '''graph graph.state graph.message graph.ui types func channels runtime errors constants managed callbacks pregel pregel.remote
    prebuilt checkpoint.postgres checkpoint.postgres.aio store.base store.sqlite store.postgres'''
for module in modules.split():
    module = importlib.import_module('langgraph.' + module)
    print(*getattr(module, '__all__', ()), sep='\\n')
from langgraph.graph import StateGraph
print(*(name for name in dir(StateGraph) if name[0] != '_'), sep='\\n')
from langgraph.runtime import Runtime
print(*('runtime.' + name for name in Runtime.__dataclass_fields__), sep='\\n')
";

#[test]
fn of_those_that_are_public() {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    let output = Command::new(python).args(["-W", "ignore", "-c", NAMES]).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = include_str!("../../../docs/guide/src/from-langgraph.md");
    let names = String::from_utf8(output.stdout).expect("text");
    let names = names.lines().filter(|name| !name.is_empty() && !PASSED_OVER.contains(name));
    let there =
        |name: &&str| ["`", "(", "="].iter().any(|end| page.contains(&format!("`{name}{end}")));
    let missing: Vec<_> = names.clone().filter(|name| !there(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(names.count() > 100);
}

//! Running the bodies of nodes, routers, tasks and entrypoints.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use superstep::checkpoint::{Map, Search, Value};
use superstep::func::{Call, Spawned};
use superstep::{NodeError, Task};

use crate::build::{cache_policy, retry_policies, timeout_policy};
use crate::expr::{Env, evaluate, truthy, type_error};
use crate::trace::encode;
use crate::world::{CaseContext, Graph, World};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a body is running with.
pub(crate) struct Body {
    world: Arc<World>,
    task: Option<Task>,
    env: Env,
    handles: HashMap<String, Spawned<Value>>,
    /// Retry policies of the entrypoint, for tasks that have none.
    retry: Json,
}

/// Whether a body continues after an operation.
enum Flow {
    On,
    Returned(Value),
}

impl Body {
    pub(crate) fn new(world: &Arc<World>, task: Option<Task>, variables: Env) -> Self {
        let handles = HashMap::new();
        Self { world: world.clone(), task, env: variables, handles, retry: Json::Null }
    }

    pub(crate) fn with_retry(mut self, retry: &Json) -> Self {
        self.retry = retry.clone();
        self
    }

    /// Runs the operations; null if none of them returns.
    pub(crate) async fn run(mut self, ops: &Json) -> Result<Value, NodeError> {
        if let Some(task) = &self.task {
            self.env.insert("runtime".to_owned(), runtime(task)?);
        }
        match self.block(ops).await? {
            Flow::Returned(value) => Ok(value),
            Flow::On => Ok(Value::Null),
        }
    }

    fn block<'a>(&'a mut self, ops: &'a Json) -> Boxed<'a, Result<Flow, NodeError>> {
        Box::pin(async move {
            for op in ops.as_array().into_iter().flatten() {
                if let Flow::Returned(value) = self.step(op).await? {
                    return Ok(Flow::Returned(value));
                }
            }
            Ok(Flow::On)
        })
    }

    fn bind(&mut self, op: &Json, value: Value) {
        if let Some(name) = op["as"].as_str() {
            self.env.insert(name.to_owned(), value);
        }
    }

    fn eval(&mut self, expr: &Json) -> Result<Value, NodeError> {
        if let Some(task) = &self.task {
            self.env.insert("runtime".to_owned(), runtime(task)?);
        }
        evaluate(expr, &self.env)
    }

    fn task(&self) -> Result<Task, NodeError> {
        self.task.clone().ok_or_else(|| type_error("this operation needs a task"))
    }

    async fn step(&mut self, op: &Json) -> Result<Flow, NodeError> {
        let has = |key: &str| op.get(key).is_some();
        if has("let") {
            if let Value::Map(values) = self.eval(&op["let"])? {
                self.env.extend(values);
            }
        } else if has("return") {
            return self.eval(&op["return"]).map(Flow::Returned);
        } else if has("if") {
            let branch = if truthy(&self.eval(&op["if"])?) { "then" } else { "else" };
            return self.block(&op[branch]).await;
        } else if has("while") {
            while truthy(&self.eval(&op["while"])?) {
                if let Flow::Returned(value) = self.block(&op["do"]).await? {
                    return Ok(Flow::Returned(value));
                }
            }
        } else if has("for") {
            let name = op["for"].as_str().unwrap_or_default().to_owned();
            let Value::List(items) = self.eval(&op["in"])? else {
                return Err(type_error("`for` goes over a list"));
            };
            for item in items {
                self.env.insert(name.clone(), item);
                if let Flow::Returned(value) = self.block(&op["do"]).await? {
                    return Ok(Flow::Returned(value));
                }
            }
        } else if has("try") {
            match self.block(&op["try"]).await {
                Ok(flow) => return Ok(flow),
                Err(error) => {
                    let kind = Value::from(error.kind());
                    self.bind(op, Value::Map(Map::from_iter([("kind".to_owned(), kind)])));
                }
            }
            return self.block(&op["catch"]).await;
        } else if has("interrupt") {
            let question = self.eval(&op["interrupt"])?;
            let answer: Value = self.task()?.interrupt(question).await;
            self.bind(op, answer);
        } else if has("emit") {
            let value = self.eval(&op["emit"])?;
            self.task()?.emit(value);
        } else if has("count") {
            let name = self.eval(&op["count"])?;
            self.world.count(name.as_str().unwrap_or_default());
        } else if has("fail") {
            self.fail(op)?;
        } else if has("sleep") {
            let ms = op["sleep"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        } else if has("heartbeat") {
            self.task()?.heartbeat();
        } else if has("drain") {
            let reason = op["drain"].as_str().unwrap_or_default();
            self.task()?.control().request_drain(reason);
        } else if has("invoke") {
            let result = self.invoke(op).await?;
            self.bind(op, result);
        } else if has("call") || has("spawn") || has("wait") || has("call_each") {
            self.call_op(op).await?;
        } else {
            self.store_op(op).await?;
        }
        Ok(Flow::On)
    }

    fn fail(&mut self, op: &Json) -> Result<(), NodeError> {
        let kind = op["fail"].as_str().unwrap_or_default().to_owned();
        let id = match op.get("id") {
            // As the other runner writes it when a case is handed over: texts as they are, no id as null.
            Some(id) => match encode(&self.eval(id)?) {
                Json::String(text) => text,
                other => other.to_string(),
            },
            None => "null".to_owned(),
        };
        let reached = self.world.reach(id);
        if op["first"].as_i64().is_some_and(|first| reached > first) {
            return Ok(());
        }
        let text = format!("{kind} raised by the case");
        let passing = matches!(&*kind, "Flaky" | "Fatal" | "ConnectionError");
        let error = if passing { NodeError::transient(text) } else { NodeError::permanent(text) };
        Err(error.named(kind))
    }

    async fn invoke(&mut self, op: &Json) -> Result<Value, NodeError> {
        let name = op["invoke"].as_str().unwrap_or_default();
        let graph =
            self.world.built(name).ok_or_else(|| type_error(format!("no graph `{name}`")))?;
        let input = self.eval(&op["input"])?;
        let task = self.task()?;
        match graph {
            Graph::State { graph, output } => {
                let table = task.invoke(&graph, input).await?;
                let mut map = table.to_map();
                map.retain(|name, _| output.contains(name));
                Ok(Value::Map(map))
            }
            Graph::Function(graph) => Ok(task.invoke(&graph, input).await?),
        }
    }

    fn call(&mut self, name: &str, args: Value) -> Result<Call<'static, Value>, NodeError> {
        let spec = self.world.case["tasks"][name].clone();
        if spec.is_null() {
            return Err(type_error(format!("no task `{name}`")));
        }
        let (world, body, given) = (self.world.clone(), spec["body"].clone(), args.clone());
        let mut call = self.task()?.call_with(name.to_owned(), move |task: Task| {
            let env = Env::from([("args".to_owned(), given.clone())]);
            let (running, body) = (Body::new(&world, Some(task), env), body.clone());
            async move { running.run(&body).await }
        });
        call = call.args(args);
        let retry = if spec["retry"].is_null() { &self.retry } else { &spec["retry"] };
        for policy in retry_policies(retry) {
            call = call.retry(policy);
        }
        if let Some(timeout) = timeout_policy(&spec["timeout"]) {
            call = call.timeout(timeout);
        }
        if spec["cache"].is_object() {
            call = call.cache(cache_policy(&spec["cache"], "args"));
        }
        Ok(call)
    }

    fn args(&mut self, op: &Json) -> Result<Value, NodeError> {
        match op.get("args") {
            Some(args) => self.eval(args),
            None => Ok(Value::List(Vec::new())),
        }
    }

    async fn call_op(&mut self, op: &Json) -> Result<(), NodeError> {
        if let Some(name) = op["call"].as_str() {
            let args = self.args(op)?;
            let result = self.call(name, args)?.spawn().await?;
            self.bind(op, result);
        } else if let Some(name) = op["spawn"].as_str() {
            let args = self.args(op)?;
            let handle = self.call(name, args)?.spawn();
            self.handles.insert(op["as"].as_str().unwrap_or_default().to_owned(), handle);
        } else if let Some(name) = op["wait"].as_str() {
            let handle = self.handles.remove(name);
            let handle = handle.ok_or_else(|| type_error(format!("no handle `{name}`")))?;
            let result = handle.await?;
            self.bind(op, result);
        } else if let Some(name) = op["call_each"].as_str() {
            let Value::List(items) = self.eval(&op["in"])? else {
                return Err(type_error("`call_each` goes over a list"));
            };
            let variable = op["var"].as_str().unwrap_or_default().to_owned();
            let mut started = Vec::new();
            for item in items {
                let mut env = self.env.clone();
                env.insert(variable.clone(), item);
                let args = evaluate(&op["args"], &env)?;
                started.push(self.call(name, args)?.spawn());
            }
            let mut results = Vec::new();
            for handle in started {
                results.push(handle.await?);
            }
            self.bind(op, Value::List(results));
        }
        Ok(())
    }

    async fn store_op(&mut self, op: &Json) -> Result<(), NodeError> {
        let task = self.task()?;
        let store = task.store().ok_or_else(|| type_error("the graph has no store"))?;
        let parts = |value: Value| match value {
            Value::List(parts) => parts,
            other => vec![other],
        };
        if op.get("store_put").is_some() {
            let parts = parts(self.eval(&op["store_put"])?);
            if let [ns, key, value] = &parts[..] {
                store.put(&texts(ns), key.as_str().unwrap_or_default(), value.clone()).await?;
            }
        } else if op.get("store_get").is_some() {
            let parts = parts(self.eval(&op["store_get"])?);
            if let [ns, key] = &parts[..] {
                let item = store.get(&texts(ns), key.as_str().unwrap_or_default()).await?;
                self.bind(op, item.map(|item| item.value).unwrap_or_default());
            }
        } else if op.get("store_search").is_some() {
            let ns = self.eval(&op["store_search"])?;
            let items = store.search(Search::below(texts(&ns))).await?;
            let mut found: Vec<Value> = items
                .into_iter()
                .map(|item| {
                    Value::Map(Map::from_iter([
                        ("key".to_owned(), Value::from(item.key)),
                        ("value".to_owned(), item.value),
                    ]))
                })
                .collect();
            found.sort_by_key(|item| crate::normalise::sort_text(&encode(item)));
            self.bind(op, Value::List(found));
        } else if op.get("store_delete").is_some() {
            let parts = parts(self.eval(&op["store_delete"])?);
            if let [ns, key] = &parts[..] {
                store.delete(&texts(ns), key.as_str().unwrap_or_default()).await?;
            }
        } else {
            return Err(type_error(format!("unknown operation {op}")));
        }
        Ok(())
    }
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    let items = value.as_list().unwrap_or_default().iter();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// What a body can read about its own run.
fn runtime(task: &Task) -> Result<Value, NodeError> {
    let control = task.control();
    let context = task.context::<CaseContext>().unwrap_or_default().0;
    let reason = control.drain_reason().map(|reason| Value::from(&*reason));
    let entries = [
        ("context", context),
        ("previous", task.previous::<Value>()?.unwrap_or_default()),
        ("attempt", Value::from(i64::from(task.attempt()))),
        ("thread", Value::from(task.thread().map(str::to_owned))),
        ("task_id", Value::from(task.id().to_string())),
        ("checkpoint_id", Value::from(task.checkpoint_id().to_string())),
        ("ns", Value::from(task.namespace())),
        ("drain_requested", Value::Bool(control.drain_requested())),
        ("drain_reason", reason.unwrap_or_default()),
    ];
    Ok(Value::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

//! Tools made of functions. `#[tool]` writes calls of what is here, and so can you.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use superstep::checkpoint::from_value;

use super::{
    AnyTool, BoxFuture, IntoToolOutput, Invocation, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::approval::Approval;

/// Begins a tool whose arguments are a struct `A`: its schema is that of the struct.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use superstep_agent::{Agent, Invocation, tool, tools};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// let add = tool::function::<Sum>("add", "Adds two numbers.")
///     .run(|sum, _: Invocation| async move { (sum.a + sum.b).to_string() });
/// assert_eq!(add.spec().name, "add");
/// ```
pub fn function<A: DeserializeOwned + JsonSchema>(
    name: impl Into<String>,
    description: impl Into<String>,
) -> Builder<A> {
    Builder { spec: specify::<A>(name, description), arguments: PhantomData }
}

/// A tool whose arguments are an `A`.
pub(crate) fn specify<A: JsonSchema>(
    name: impl Into<String>,
    description: impl Into<String>,
) -> ToolSpec {
    let schema = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = schema.into_generator().into_root_schema_for::<A>();
    for word in ["$schema", "title", "description"] {
        schema.remove(word);
    }
    let mut schema = schema.to_value();
    if let Some(schema) = schema.as_object_mut() {
        // Providers want to see the properties of a tool that has none.
        schema.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    ToolSpec::new(name, description, schema)
}

/// A tool that lacks its function.
#[derive(Debug)]
#[must_use = "a tool is made by `run`"]
pub struct Builder<A> {
    spec: ToolSpec,
    arguments: PhantomData<fn() -> A>,
}

impl<A: DeserializeOwned + Send + 'static> Builder<A> {
    /// A person is asked before it runs.
    pub fn approve(mut self) -> Self {
        self.spec.approval = Some(Approval::default());
        self
    }

    /// The agent ends with its result.
    pub fn return_direct(mut self) -> Self {
        self.spec.return_direct = true;
        self
    }

    /// The tool, with its function.
    pub fn run<F, R>(self, run: F) -> AnyTool
    where
        F: Fn(A, Invocation) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: IntoToolOutput,
    {
        Arc::new(Function { spec: Arc::new(self.spec), run, arguments: PhantomData::<fn() -> A> })
    }
}

struct Function<A, F> {
    spec: Arc<ToolSpec>,
    run: F,
    arguments: PhantomData<fn() -> A>,
}

impl<A, F, R> Tool for Function<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, Invocation) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoToolOutput,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<Result<ToolOutput, ToolError>> {
        let arguments = match from_value(invocation.args()) {
            Ok(arguments) => arguments,
            Err(error) => {
                let refused = ToolError::arguments(error.to_string());
                return Box::pin(std::future::ready(Err(refused)));
            }
        };
        let output = (self.run)(arguments, invocation);
        Box::pin(async move { output.await.into_tool_output() })
    }
}

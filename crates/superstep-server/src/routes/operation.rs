//! What an endpoint is: one row of the table from which the router, the OpenAPI document and the rules of access are made.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::handler::Handler;
use axum::http::{HeaderMap, Method};
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::State;
use crate::app::App;
use crate::wire::{Body, Path, Query, RawBody};

/// What an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Assistants,
    Threads,
    Runs,
    Crons,
    Store,
    System,
}

impl Resource {
    pub(crate) const ALL: [Self; 6] =
        [Self::Assistants, Self::Threads, Self::Runs, Self::Crons, Self::Store, Self::System];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Assistants => "Assistants",
            Self::Threads => "Threads",
            Self::Runs => "Runs",
            Self::Crons => "Crons",
            Self::Store => "Store",
            Self::System => "System",
        }
    }
}

/// What an operation does with its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Shows no user's data; needs no identity.
    Open,
    /// Looks at one object.
    Read,
    /// Lists or counts objects.
    Search,
    Create,
    /// Changes an object that is there.
    Write,
    Delete,
}

/// What a client must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) resource: Resource,
    pub(crate) action: Action,
}

/// Gives the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(super) fn schema_of<T: JsonSchema>() -> SchemaOf {
    SchemaGenerator::subschema_for::<T>
}

/// What the body of an answer is.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Nothing,
    Json(SchemaOf),
    /// Server-sent events.
    Events,
    Text(&'static str),
}

/// A parameter of the query or a header.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `query` or `header`.
    pub(super) place: &'static str,
    pub(super) required: bool,
    pub(super) about: &'static str,
    pub(super) schema: SchemaOf,
}

/// What the handler of an operation takes from a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Takes {
    pub(super) body: Option<SchemaOf>,
    pub(super) query: bool,
}

/// One operation of the API.
pub(crate) struct Operation {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(super) takes: Takes,
    pub(super) parameters: Vec<Parameter>,
    pub(super) answers: Vec<(u16, Content)>,
    pub(super) handler: MethodRouter<Arc<App>>,
}

impl Operation {
    /// An operation whose body is described by the type that its handler reads.
    fn new<H, T>(method: Method, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: Arguments + 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("the table names known methods");
        Self {
            method,
            path,
            summary: "",
            access,
            takes: T::takes(),
            parameters: Vec::new(),
            answers: Vec::new(),
            handler: on(filter, handler),
        }
    }

    pub(super) fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    fn parameter<T: JsonSchema>(
        mut self,
        place: &'static str,
        name: &'static str,
        about: &'static str,
    ) -> Self {
        let schema = schema_of::<T>();
        self.parameters.push(Parameter { name, place, required: false, about, schema });
        self
    }

    pub(super) fn query<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.parameter::<T>("query", name, about)
    }

    pub(super) fn header<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.parameter::<T>("header", name, about)
    }

    /// The parameter that was named last must be there.
    pub(super) fn required(mut self) -> Self {
        if let Some(last) = self.parameters.last_mut() {
            last.required = true;
        }
        self
    }

    /// Answers 200 with JSON of this form.
    pub(super) fn json<T: JsonSchema>(self) -> Self {
        self.answers(200, Content::Json(schema_of::<T>()))
    }

    pub(super) fn no_content(self) -> Self {
        self.answers(204, Content::Nothing)
    }

    pub(super) fn answers(mut self, status: u16, content: Content) -> Self {
        self.answers.push((status, content));
        self
    }

    /// Refuses with these statuses, beside those that every operation can refuse with.
    pub(super) fn refuses<const N: usize>(self, statuses: [u16; N]) -> Self {
        statuses.into_iter().fold(self, |operation, status| {
            operation.answers(status, Content::Json(schema_of::<crate::wire::Detail<'_>>()))
        })
    }

    /// Whether it is refused when there is too much to do: it creates a run, or waits for one.
    pub(super) fn waits(&self) -> bool {
        self.access == Access { resource: Resource::Runs, action: Action::Create }
            || self.path.ends_with("/join")
            || self.path.ends_with("/stream")
    }

    /// The parameters in the path.
    pub(super) fn in_path(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

macro_rules! methods {
    ($($name:ident = $method:ident,)*) => {
        $(
            pub(super) fn $name<H, T>(
                path: &'static str,
                resource: Resource,
                action: Action,
                handler: H,
            ) -> Operation
            where
                H: Handler<T, Arc<App>>,
                T: Arguments + 'static,
            {
                Operation::new(Method::$method, path, Access { resource, action }, handler)
            }
        )*
    };
}

methods! { get = GET, post = POST, put = PUT, patch = PATCH, delete = DELETE, }

/// How many rows are wanted.
#[derive(JsonSchema)]
#[schemars(inline, extend("minimum" = 1, "maximum" = 1000))]
pub(super) struct Limit(#[expect(dead_code, reason = "it is a schema")] u64);

/// How many rows are skipped.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct Offset(#[expect(dead_code, reason = "it is a schema")] u64);

/// Something that a handler takes from a request.
pub(crate) trait Argument {
    fn describe(_: &mut Takes) {}
}

impl Argument for State {}
impl Argument for HeaderMap {}
impl<T> Argument for Path<T> {}
impl<E> Argument for Result<WebSocketUpgrade, E> {}

impl Argument for Query {
    fn describe(takes: &mut Takes) {
        takes.query = true;
    }
}

impl<T: JsonSchema> Argument for Body<T> {
    fn describe(takes: &mut Takes) {
        takes.body = Some(schema_of::<T>());
    }
}

impl<T: JsonSchema> Argument for RawBody<T> {
    fn describe(takes: &mut Takes) {
        takes.body = Some(schema_of::<T>());
    }
}

/// The arguments of a handler, as axum marks them.
pub(crate) trait Arguments {
    fn takes() -> Takes;
}

impl Arguments for ((),) {
    fn takes() -> Takes {
        Takes::default()
    }
}

macro_rules! arguments {
    ($(($($argument:ident),*);)*) => {
        $(
            impl<M, $($argument: Argument),*> Arguments for (M, $($argument,)*) {
                fn takes() -> Takes {
                    let mut takes = Takes::default();
                    $($argument::describe(&mut takes);)*
                    takes
                }
            }
        )*
    };
}

arguments! { (A); (A, B); (A, B, C); (A, B, C, D); (A, B, C, D, E); }

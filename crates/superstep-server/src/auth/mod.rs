//! Who may use the server, and for what.
//!
//! [`Auth`] finds out who sends a request and what they may do; [`gate`] stands before every operation and asks it. Operations
//! get a [`Caller`](crate::access::Caller), which is the only way to the keys of objects, so they reach what belongs to the
//! tenant of the caller.
//!
//! Knows what kind of operation it stands before, the API keys in the store, and nothing of what the operation does.

mod gate;
#[cfg(feature = "jwt")]
mod jwt;
pub(crate) mod secret;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::request::Parts;

use crate::access::{Access, Action, Filter, Identity};

pub(crate) use gate::{Gate, Gatekeeper, check};
#[cfg(feature = "jwt")]
pub use jwt::{BadTokenKey, Jwt};

/// Why a request is refused. The text is shown to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// Nobody knows who sent it: 401.
    Unauthenticated(String),
    /// They may not do that: 403.
    Forbidden(String),
    /// Whoever knows cannot be asked now: 503.
    Unavailable(String),
}

/// Finds out who sends a request, and what they may do.
///
/// It is asked before anything of the request but its head is read. [`Action::Open`] operations are not asked about.
///
/// ```
/// use superstep_server::{Access, Auth, Denied, Filter, Identity, Parts, Role};
///
/// /// A proxy before the server knows who somebody is. Everybody sees their own threads only.
/// struct Proxy;
///
/// impl Auth for Proxy {
///     async fn authenticate(&self, request: &Parts) -> Result<Identity, Denied> {
///         let user = request.headers.get("x-user").and_then(|user| user.to_str().ok());
///         let user = user.ok_or_else(|| Denied::Unauthenticated("no user".to_owned()))?;
///         Ok(Identity::new(user).role(Role::User))
///     }
///
///     async fn authorise(&self, who: &Identity, access: Access) -> Result<Filter, Denied> {
///         superstep_server::by_role(who, access)?;
///         match access.resource {
///             superstep_server::Resource::Threads | superstep_server::Resource::Runs => {
///                 Ok(Filter::everything().and("owner", who.id.as_str()))
///             }
///             _ => Ok(Filter::everything()),
///         }
///     }
/// }
/// ```
pub trait Auth: Send + Sync + 'static {
    /// Who sends this request.
    ///
    /// # Errors
    /// [`Denied::Unauthenticated`] if nobody knows.
    fn authenticate(
        &self,
        request: &Parts,
    ) -> impl Future<Output = Result<Identity, Denied>> + Send;

    /// Whether they may do this, and with which objects of their tenant. What their [role](crate::Role) allows, unless replaced.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] if they may not.
    fn authorise(
        &self,
        identity: &Identity,
        access: Access,
    ) -> impl Future<Output = Result<Filter, Denied>> + Send {
        std::future::ready(by_role(identity, access))
    }
}

/// Allows what the role of somebody allows.
///
/// # Errors
/// [`Denied::Forbidden`] if the role does not allow it.
pub fn by_role(identity: &Identity, access: Access) -> Result<Filter, Denied> {
    if identity.role.allows(&identity.tenant, access) {
        return Ok(Filter::everything());
    }
    let role = identity.role.as_str();
    Err(Denied::Forbidden(match access.action {
        Action::Operate => "this is for admins of the default tenant".to_owned(),
        _ => format!("the role `{role}` may not {access}; ask for a key with another role"),
    }))
}

/// The object-safe twin of [`Auth`].
pub(crate) trait AnyAuth: Send + Sync {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> Boxed<'a, Identity>;
    fn authorise<'a>(&'a self, identity: &'a Identity, access: Access) -> Boxed<'a, Filter>;
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Denied>> + Send + 'a>>;

impl<A: Auth> AnyAuth for A {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> Boxed<'a, Identity> {
        Box::pin(Auth::authenticate(self, request))
    }

    fn authorise<'a>(&'a self, identity: &'a Identity, access: Access) -> Boxed<'a, Filter> {
        Box::pin(Auth::authorise(self, identity, access))
    }
}

/// Any [`Auth`].
pub(crate) type SharedAuth = Arc<dyn AnyAuth>;

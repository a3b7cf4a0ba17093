use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// What an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// Graphs with settings.
    Assistants,
    /// Threads and their states.
    Threads,
    /// Runs of threads, and runs without one.
    Runs,
    /// Runs that a schedule starts.
    Crons,
    /// Long-term memory.
    Store,
    /// The server itself.
    System,
}

impl Resource {
    pub(crate) const ALL: [Self; 6] =
        [Self::Assistants, Self::Threads, Self::Runs, Self::Crons, Self::Store, Self::System];

    /// The name of the resource.
    pub fn as_str(self) -> &'static str {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Shows nothing that belongs to anybody. It needs no identity, and [`Auth`](crate::Auth) is not asked.
    Open,
    /// Looks at one object.
    Read,
    /// Lists or counts objects.
    Search,
    /// Makes an object.
    Create,
    /// Changes an object.
    Write,
    /// Deletes an object.
    Delete,
    /// Looks at the server as a whole, with all its tenants.
    Operate,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Access {
    /// With what.
    pub resource: Resource,
    /// What.
    pub action: Action,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Open | Action::Read => "read",
            Action::Search => "list",
            Action::Create => "create",
            Action::Write => "change",
            Action::Delete => "delete",
            Action::Operate => "operate",
        };
        write!(f, "{action} {}", self.resource.as_str().to_lowercase())
    }
}

/// What somebody may do with the objects of their tenant.
///
/// | Role | Threads, runs, crons, store | Assistants | The server itself |
/// | --- | --- | --- | --- |
/// | `Viewer` | read, list | read, list | |
/// | `User` | everything | read, list | |
/// | `Admin` | everything | everything | of the default tenant: [`Action::Operate`] |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Changes assistants, which all users of a tenant share. In the default tenant: operates the server.
    Admin,
    /// Works with threads, runs, crons and the store.
    User,
    /// Looks.
    Viewer,
}

impl Role {
    /// The roles there are.
    pub const ALL: [Self; 3] = [Self::Admin, Self::User, Self::Viewer];

    /// The name of the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Viewer => "viewer",
        }
    }

    /// Whether the role allows something, in this tenant.
    pub fn allows(self, tenant: &str, access: Access) -> bool {
        match (access.action, self) {
            (Action::Open | Action::Read | Action::Search, _) => true,
            (Action::Operate, role) => role == Self::Admin && tenant == crate::tenant::DEFAULT,
            (Action::Create | Action::Write | Action::Delete, Self::Viewer) => false,
            (Action::Create | Action::Write | Action::Delete, Self::User) => {
                access.resource != Resource::Assistants
            }
            (Action::Create | Action::Write | Action::Delete, Self::Admin) => true,
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| format!("`{word}` is no role; there are admin, user and viewer"))
    }
}

/// Somebody who sends requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Who it is. Answers are recorded under it, and nodes find it as `langgraph_auth_user_id` in their configuration.
    pub id: String,
    /// The tenant, whose objects are the only ones there are for them; the default tenant if it is empty. At most 63 letters,
    /// digits, `-` and `_`.
    pub tenant: String,
    /// What they may do, unless [`Auth::authorise`](crate::Auth::authorise) decides otherwise.
    pub role: Role,
}

impl Identity {
    /// A user of the default tenant.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), tenant: String::new(), role: Role::User }
    }

    /// In this tenant.
    #[must_use]
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), ..self }
    }

    /// With this role.
    #[must_use]
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// Which objects of a tenant somebody can see: those whose metadata contain all of this. Objects that they make get it as
/// metadata, so that they see them.
///
/// Threads, assistants and crons have metadata of their own; a run is seen by those who see its thread. Items of the store have none, so
/// a filter there is refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(pub(crate) Map<String, Json>);

impl Filter {
    /// All objects of the tenant.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Only objects with this in their metadata, and what else was asked for.
    #[must_use]
    pub fn and(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_allows_what_its_row_says() {
        let writes = [Action::Create, Action::Write, Action::Delete];
        for resource in Resource::ALL {
            for role in Role::ALL {
                let allows = |tenant, action| role.allows(tenant, Access { resource, action });
                assert!(allows("", Action::Read) && allows("t", Action::Search));
                for write in writes {
                    let expected = match role {
                        Role::Viewer => false,
                        Role::User => resource != Resource::Assistants,
                        Role::Admin => true,
                    };
                    assert_eq!(allows("t", write), expected, "{role:?} {resource:?} {write:?}");
                }
                assert_eq!(allows("", Action::Operate), role == Role::Admin);
                assert!(!allows("t", Action::Operate), "tenants do not see the whole server");
            }
        }
    }
}

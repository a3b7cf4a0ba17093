//! Which tenant an object belongs to.
//!
//! Ids that clients choose are unique within their tenant only, so the store and the checkpoints keep objects under a *key*: the
//! id of the object after the name of its tenant, as in `acme:0192…`. Objects of the default tenant, whose name is empty, have
//! their ids as keys; so a server without tenants reads and writes LangGraph's databases as they are. Ids are UUIDs and names
//! have no colon, so each key is of one tenant. Who makes keys of the tenant of the caller only cannot reach those of others.
//!
//! Knows the library only.

mod checkpoints;
mod items;

pub(crate) use checkpoints::TenantCheckpoints;
pub(crate) use items::TenantItems;

/// The tenant of those who are let in without one.
pub(crate) const DEFAULT: &str = "";

/// How long the name of a tenant can be.
const NAME_MAX: usize = 63;

/// What stands between the name of a tenant and an id.
const SEPARATOR: char = ':';

/// Finds out whether a text can be the name of a tenant. The error says why not.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.len() <= NAME_MAX && name.bytes().all(fits) {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be the name of a tenant; it has at most {NAME_MAX} letters, digits, `-` and `_`"
    ))
}

/// The key of the object with this id.
pub(crate) fn key(tenant: &str, id: &str) -> String {
    match tenant {
        DEFAULT => id.to_owned(),
        tenant => format!("{tenant}{SEPARATOR}{id}"),
    }
}

/// The id of an object, as its clients know it.
pub(crate) fn id_of(key: &str) -> &str {
    key.split_once(SEPARATOR).map_or(key, |(_, id)| id)
}

/// The tenant of the object with this key.
pub(crate) fn tenant_of(key: &str) -> &str {
    key.split_once(SEPARATOR).map_or(DEFAULT, |(tenant, _)| tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_whose_it_is() {
        for tenant in ["", "acme", "a-b_C9"] {
            check_name(tenant).expect("a name");
            let key = key(tenant, "0192");
            assert_eq!((tenant_of(&key), id_of(&key)), (tenant, "0192"));
        }
        for bad in ["a:b", "a b", "ä", "a/b", &"x".repeat(64)] {
            assert!(check_name(bad).expect_err("no name").contains("letters"), "{bad}");
        }
    }
}

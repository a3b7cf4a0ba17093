//! The API keys in a database of a server.

use serde_json::{Value as Json, json};
use superstep_server::{Database, KeyInfo, KeyRing};

use super::serve::failed;
use crate::args::KeysCmd;
use crate::out::{Fail, Out, tame};
use crate::time::iso;

/// Makes, lists or revokes keys.
pub(crate) async fn keys(db: Option<&str>, command: KeysCmd, out: Out) -> Result<(), Fail> {
    let database: Database = match db.filter(|db| !db.is_empty()) {
        Some(db) => db.parse().map_err(|error| failed(&error))?,
        None => {
            return Err(Fail::usage(
                "no database was named; give --db with what the server is given, or set SUPERSTEP_DB",
            ));
        }
    };
    let ring = KeyRing::open(&database).await.map_err(|error| failed(&error))?;
    match command {
        KeysCmd::Add { name, tenant, role } => {
            let (info, key) =
                ring.add(&name, &tenant, role).await.map_err(|error| failed(&error))?;
            let mut json = to_json(&info);
            json["key"] = key.as_str().into();
            out.either(&json, || {
                eprintln!("Keep it: the key cannot be shown again.");
                key
            })
        }
        KeysCmd::List => {
            let all = ring.list().await.map_err(|error| failed(&error))?;
            let json: Json = all.iter().map(to_json).collect();
            out.either(&json, || all.iter().map(|info| line(info, out)).collect())
        }
        KeysCmd::Revoke { key } => {
            let info = ring.revoke(&key).await.map_err(|error| failed(&error))?;
            out.either(&to_json(&info), || format!("`{}` is revoked.", tame(&info.name)))
        }
    }
}

fn to_json(info: &KeyInfo) -> Json {
    json!({
        "id": info.id,
        "name": info.name,
        "tenant": info.tenant,
        "role": info.role.as_str(),
        "created_at": iso(info.created_at),
        "revoked_at": info.revoked_at.map(iso),
    })
}

fn line(info: &KeyInfo, out: Out) -> String {
    let tenant = match &*info.tenant {
        "" => "the default tenant".to_owned(),
        tenant => format!("tenant {tenant}"),
    };
    let state = match info.revoked_at {
        Some(at) => out.bad(format_args!("revoked {}", iso(at))),
        None => out.good("works"),
    };
    let (id, name, role) = (&info.id, out.bold(tame(&info.name)), info.role.as_str());
    let made = out.dim(format_args!("made {}", iso(info.created_at)));
    format!("{id}  {name}  {role} of {tenant}  {state}  {made}\n")
}

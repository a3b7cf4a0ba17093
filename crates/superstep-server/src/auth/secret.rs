//! API keys as texts, and how one is recognised.
//!
//! What is stored and compared is the SHA-256 of a key. A slow hash, as for passwords, would protect keys that can be
//! guessed; these have 256 random bits, so that nobody can, and every request has to be hashed.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What the keys begin with that are made here, so that tools that look for leaked secrets find them.
const PREFIX: &str = "superstep_";

const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// The hash of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    pub(crate) fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Compares in a time that does not depend on where they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// As [`Hash::is`], with a hash that was stored.
    pub(crate) fn is_hex(&self, stored: &str) -> bool {
        self.to_hex().as_bytes().ct_eq(stored.as_bytes()).into()
    }
}

/// A new key: the part that finds its row, and the whole.
pub(crate) fn new_key() -> Result<(String, String), getrandom::Error> {
    let mut bytes = [0; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    let (id, secret) = bytes.split_at(ID_BYTES);
    let (id, secret) = (hex(id), hex(secret));
    let key = format!("{PREFIX}{id}_{secret}");
    Ok((id, key))
}

/// The part of a key that finds its row; nothing if the text is no key that was made here.
pub(crate) fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    (id.len() == 2 * ID_BYTES && secret.len() == 2 * SECRET_BYTES).then_some(id)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_must_be_the_whole_key() {
        let (id, key) = new_key().expect("random bytes");
        assert_eq!(id_of(&key), Some(&*id));
        let stored = Hash::of(&key).to_hex();
        assert!(Hash::of(&key).is_hex(&stored) && Hash::of(&key).is(&Hash::of(&key)));
        for wrong in ["", &key[1..], &key[..key.len() - 1], &key.to_uppercase(), &format!("{key}0")]
        {
            assert!(!Hash::of(wrong).is_hex(&stored), "{wrong}");
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
        assert_ne!(new_key().expect("random bytes").1, key);
    }
}

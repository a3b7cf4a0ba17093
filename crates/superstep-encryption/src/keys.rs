//! Keys, and the stored form of an encrypted value.

use std::collections::BTreeMap;
use std::fmt;

use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use superstep_checkpoint::{Blob, Error, Tag};

use crate::place::Place;

/// The prefix of every stored value: a mark and the version of the format.
const MARK: &[u8] = b"sse1";
const NONCE: usize = 24;

/// The encryption keys.
///
/// One of them encrypts new values; the others decrypt older ones. Each stored value names its key,
/// so that a key can be replaced at any time: give the new one, and the old one to
/// [`and`](Self::and).
#[derive(Clone)]
pub struct Keys {
    current: String,
    ciphers: BTreeMap<String, XChaCha20Poly1305>,
}

impl Keys {
    /// A key of 32 random bytes, and its name in storage. The name is not secret.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is empty or longer than 255 bytes.
    pub fn new(id: impl Into<String>, key: &[u8; 32]) -> Result<Self, Error> {
        let current = id.into();
        let none = Self { current: current.clone(), ciphers: BTreeMap::new() };
        none.and(current, key)
    }

    /// Adds a key for decryption only.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is empty or longer than 255 bytes, or there is a key of this name already.
    pub fn and(mut self, id: impl Into<String>, key: &[u8; 32]) -> Result<Self, Error> {
        let id = id.into();
        if id.is_empty() || id.len() > 255 {
            return Err(Error::invalid("the name of a key has between 1 and 255 bytes"));
        }
        if self.ciphers.contains_key(&id) {
            return Err(Error::invalid(format_args!(
                "there are two keys named `{id}`; each needs a name of its own, so that stored values can name theirs"
            )));
        }
        self.ciphers.insert(id, XChaCha20Poly1305::new(key.into()));
        Ok(self)
    }

    /// Encrypts a value for a place: mark, name of the key, nonce, and the encrypted tag and bytes.
    pub(crate) fn seal(&self, place: &Place<'_>, value: &Blob) -> Result<Blob, Error> {
        let cipher = self.cipher(&self.current, place)?;
        // 24 random bytes do not repeat, however many values are stored.
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let word = value.tag().as_str().as_bytes();
        let length = u8::try_from(word.len())
            .map_err(|_| Error::invalid("the type of a value has more than 255 bytes"))?;
        let mut plain = vec![length];
        plain.extend_from_slice(word);
        plain.extend_from_slice(value.bytes());
        let header = self.header();
        let payload = Payload { msg: &plain, aad: &place.bytes(&header) };
        let sealed = cipher
            .encrypt(&nonce, payload)
            .map_err(|_| Error::invalid(format_args!("{place} is too large to be encrypted")))?;
        let mut bytes = header;
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Ok(Blob::new(Tag::Bytes, bytes))
    }

    /// Decrypts the value of a place.
    pub(crate) fn open(&self, place: &Place<'_>, stored: &Blob) -> Result<Blob, Error> {
        let Some((id, header, rest)) = parts(stored) else {
            return Err(Error::codec(format_args!(
                "{place} is not encrypted, and nothing else is accepted here; either it was changed from outside, or it was \
                 stored before encryption was turned on"
            )));
        };
        let cipher = self.cipher(id, place)?;
        let (nonce, sealed) = rest.split_at(NONCE);
        let payload = Payload { msg: sealed, aad: &place.bytes(header) };
        let plain = cipher.decrypt(XNonce::from_slice(nonce), payload).map_err(|_| {
            Error::codec(format_args!(
                "{place} cannot be decrypted with key `{id}`: it was changed, or moved here from elsewhere, or the key is \
                 not the one it was encrypted with"
            ))
        })?;
        let tag =
            plain.split_first().and_then(|(length, rest)| rest.split_at_checked((*length).into()));
        let word = tag.and_then(|(word, bytes)| Some((std::str::from_utf8(word).ok()?, bytes)));
        let (word, bytes) =
            word.ok_or_else(|| Error::codec(format_args!("{place} has no type")))?;
        Ok(Blob::new(Tag::from_word(word), bytes))
    }

    fn header(&self) -> Vec<u8> {
        let mut header = MARK.to_vec();
        // Names are checked when they are given.
        header.push(self.current.len() as u8);
        header.extend_from_slice(self.current.as_bytes());
        header
    }

    fn cipher(&self, id: &str, place: &Place<'_>) -> Result<&XChaCha20Poly1305, Error> {
        self.ciphers.get(id).ok_or_else(|| {
            Error::codec(format_args!(
                "{place} was encrypted with key `{id}`, which is not known here; give it with `Keys::and`"
            ))
        })
    }
}

/// Leaves the keys out.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&String> = self.ciphers.keys().collect();
        f.debug_struct("Keys").field("current", &self.current).field("known", &known).finish()
    }
}

/// The name of the key, everything up to it, and what follows.
fn parts(stored: &Blob) -> Option<(&str, &[u8], &[u8])> {
    let bytes = stored.bytes();
    let after = bytes.strip_prefix(MARK).filter(|_| *stored.tag() == Tag::Bytes)?;
    let (length, after) = after.split_first()?;
    let (id, rest) = after.split_at_checked(usize::from(*length))?;
    let (header, _) = bytes.split_at_checked(bytes.len().checked_sub(rest.len())?)?;
    (rest.len() >= NONCE).then_some((std::str::from_utf8(id).ok()?, header, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Kind;

    const PLACE: Place<'_> = Place { thread: "t", ns: "", channel: "c", kind: Kind::Value(None) };

    /// Stored bytes are untrusted: any manipulation is refused, without a panic.
    #[test]
    fn every_change_of_a_stored_value_is_refused() {
        let keys = Keys::new("key", &[7; 32]).expect("a key");
        let value = Blob::encode(&"a secret").expect("data");
        let sealed = keys.seal(&PLACE, &value).expect("sealed");
        assert_eq!(keys.open(&PLACE, &sealed).expect("opened").bytes(), value.bytes());
        let bytes = sealed.bytes();
        for length in 0..bytes.len() {
            keys.open(&PLACE, &Blob::new(Tag::Bytes, &bytes[..length])).expect_err("cut off");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.to_vec();
                changed[at] ^= 1 << bit;
                keys.open(&PLACE, &Blob::new(Tag::Bytes, changed)).expect_err("changed");
            }
        }
        let longer = [bytes, &[0]].concat();
        keys.open(&PLACE, &Blob::new(Tag::Bytes, longer)).expect_err("made longer");
    }
}

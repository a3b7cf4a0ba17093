use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a storage within this process.
///
/// Two checkpointers with the same id have the same threads, so a run on one of them is a run on
/// the other. Checkpointers on the same storage with different ids are treated like those of two
/// processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StorageId(Kind, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Unique,
    Shared,
    Named,
}

impl StorageId {
    /// An id that nothing else has.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(Kind::Unique, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The id of the value behind this pointer. It is valid while a clone lives.
    pub fn shared<T: ?Sized>(pointer: &Arc<T>) -> Self {
        Self(Kind::Shared, Arc::as_ptr(pointer).addr() as u64)
    }

    /// The id of a named storage, such as the full path of a file or the address of a database.
    pub fn named(name: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self(Kind::Named, hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_equal_for_the_same_storage_only() {
        assert_ne!(StorageId::unique(), StorageId::unique());
        let (one, other) = (Arc::new(1), Arc::new(1));
        assert_eq!(StorageId::shared(&one), StorageId::shared(&one.clone()));
        assert_ne!(StorageId::shared(&one), StorageId::shared(&other));
        assert_eq!(StorageId::named(&"a"), StorageId::named(&"a".to_owned()));
        assert_ne!(StorageId::named(&"a"), StorageId::named(&"b"));
    }
}

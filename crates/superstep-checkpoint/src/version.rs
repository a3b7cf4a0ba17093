use std::fmt;
use std::sync::Arc;

/// The version of a channel, incremented when a superstep changes it.
///
/// As text it is the number with 32 digits, a dot, and a random fraction that distinguishes
/// branches. Versions compare as text, so by number first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// The version that follows number `previous`, with a fraction made of `random`.
    pub fn after(previous: u64, random: u64) -> Self {
        // 53 bits are what a float can hold, so the text is what LangGraph would print.
        let fraction = (random >> 11) as f64 / (1u64 << 53) as f64;
        Self(format!("{:032}.{fraction:0>16}", u128::from(previous) + 1).into())
    }

    /// A version as it was stored.
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The number in front of the first dot; `None` if there is none, or one of more than 64 bits.
    pub fn number(&self) -> Option<u64> {
        self.0.split('.').next().and_then(|digits| digits.parse().ok())
    }

    /// The version as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_print_as_the_reference_does_and_sort_by_number() {
        let half = Version::after(6, 1 << 63);
        assert_eq!(half.as_str(), "00000000000000000000000000000007.00000000000000.5");
        assert_eq!(half.number(), Some(7));
        assert!(Version::after(9, 0) > Version::after(8, u64::MAX));
        let beyond = Version::after(u64::MAX, 0);
        assert!(beyond > Version::after(u64::MAX - 1, 0));
        assert_eq!(beyond.number(), None);
        assert_eq!(Version::from_text("newest").number(), None);
    }
}

//! Anything that ends a measurement, told to whoever reads the table.

/// What went wrong, in words.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

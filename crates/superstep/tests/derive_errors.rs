//! What the compiler says when a derived state or view has a mistake, and that it says nothing when there is none.
//!
//! Compiler messages change with the compiler; `TRYBUILD=overwrite cargo test -p superstep --test
//! derive_errors` writes the expected ones again.

#[test]
fn mistakes_are_reported_where_they_are() {
    let tests = trybuild::TestCases::new();
    tests.pass("tests/ui/pass/*.rs");
    tests.compile_fail("tests/ui/fail/*.rs");
}

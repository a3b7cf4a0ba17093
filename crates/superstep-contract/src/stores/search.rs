//! Finding items by place and value.

use superstep_checkpoint::{Comparison, Search, Value};

use super::{Subject, keys, map, ns};
use crate::checkpointers::kit::{Case, same};

async fn finds(subject: &Subject, search: Search, wanted: &[&str]) -> Case {
    let found = subject.store.search(search.clone()).await?;
    same(keys(&found), wanted.to_vec(), &format!("{search:?}"))
}

pub(super) async fn items_are_found_by_whole_labels(subject: Subject) -> Case {
    for (labels, key) in [
        (&["u", "ann"][..], "a"),
        (&["u", "bob"], "b"),
        (&["u", "ann", "old"], "c"),
        (&["u_1"], "d"),
        (&["U"], "e"),
        (&["u%"], "f"),
        (&["u\\"], "g"),
        (&["u*"], "h"),
        (&["u-"], "i"),
        (&["u/"], "j"),
    ] {
        subject.store.put(&ns(labels), key, Value::Null).await?;
    }
    let none: [&str; 0] = [];
    finds(&subject, Search::below(none), &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
        .await?;
    finds(&subject, Search::below(["u"]), &["a", "b", "c"]).await?;
    finds(&subject, Search::below(["u", "ann"]), &["a", "c"]).await?;
    finds(&subject, Search::below(["u_1"]), &["d"]).await?;
    finds(&subject, Search::below(["u%"]), &["f"]).await?;
    finds(&subject, Search::below(["u\\"]), &["g"]).await?;
    finds(&subject, Search::below(["u*"]), &["h"]).await?;
    finds(&subject, Search::below(["u", "a"]), &[]).await?;
    finds(&subject, Search::below(["x"]), &[]).await
}

pub(super) async fn items_come_in_the_order_of_their_last_put(subject: Subject) -> Case {
    for (label, key) in [("b", "1"), ("a", "2"), ("c", "3"), ("b", "1")] {
        subject.store.put(&ns(&["n", label]), key, Value::Null).await?;
    }
    finds(&subject, Search::below(["n"]), &["2", "3", "1"]).await
}

pub(super) async fn limit_and_offset_cut_a_page(subject: Subject) -> Case {
    let names = ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"];
    for key in names {
        subject.store.put(&ns(&["n"]), key, Value::Null).await?;
    }
    finds(&subject, Search::below(["n"]), &names[..10]).await?;
    finds(&subject, Search::below(["n"]).limit(2).offset(3), &["03", "04"]).await?;
    finds(&subject, Search::below(["n"]).limit(usize::MAX).offset(11), &["11"]).await?;
    finds(&subject, Search::below(["n"]).limit(0), &[]).await?;
    finds(&subject, Search::below(["n"]).offset(50), &[]).await
}

pub(super) async fn comparisons_know_numbers_from_text(subject: Subject) -> Case {
    let n = |value: Value| map(&[("n", value)]);
    for (key, value) in [
        ("nine", n(9.into())),
        ("fifty", n(50.0.into())),
        ("hundred", n(100.into())),
        ("greatest", n(u64::MAX.into())),
        ("text", n("70".into())),
        ("Text", n("Zoe".into())),
        ("list", n(Value::List(vec![1.into()]))),
        ("yes", n(true.into())),
        ("null", n(Value::Null)),
        ("missing", map(&[])),
        ("no map", 9.into()),
    ] {
        subject.store.put(&ns(&["n"]), key, value).await?;
    }
    let all = || Search::below(["n"]).limit(100);
    let nearly: Value = (u64::MAX - 1).into();
    use Comparison::{AtLeast, AtMost, Greater, Less, NotEqual};
    finds(&subject, all().compare("n", Greater, 10), &["fifty", "hundred", "greatest"]).await?;
    finds(&subject, all().compare("n", AtLeast, 100.0), &["hundred", "greatest"]).await?;
    finds(&subject, all().compare("n", Less, 50), &["nine"]).await?;
    finds(&subject, all().compare("n", AtMost, 50), &["nine", "fifty"]).await?;
    finds(&subject, all().compare("n", Greater, nearly), &["greatest"]).await?;
    finds(&subject, all().compare("n", Greater, "7"), &["text", "Text"]).await?;
    finds(&subject, all().compare("n", Less, "a"), &["text", "Text"]).await?;
    finds(&subject, all().compare("n", Less, true), &[]).await?;
    finds(&subject, all().filter("n", 50), &["fifty"]).await?;
    finds(&subject, all().filter("n", "70"), &["text"]).await?;
    finds(&subject, all().filter("n", true), &["yes"]).await?;
    finds(&subject, all().filter("n", Value::List(vec![1.into()])), &["list"]).await?;
    let other = ["nine", "hundred", "greatest", "text", "Text", "list", "yes", "null", "missing"];
    let other: Vec<&str> = other.into_iter().chain(["no map"]).collect();
    finds(&subject, all().compare("n", NotEqual, 50), &other).await
}

pub(super) async fn null_is_the_value_of_a_missing_key(subject: Subject) -> Case {
    subject.store.put(&ns(&["n"]), "null", map(&[("n", Value::Null)])).await?;
    subject.store.put(&ns(&["n"]), "missing", map(&[])).await?;
    subject.store.put(&ns(&["n"]), "zero", map(&[("n", 0.into())])).await?;
    finds(&subject, Search::below(["n"]).filter("n", Value::Null), &["null", "missing"]).await?;
    let some = Search::below(["n"]).compare("n", Comparison::NotEqual, Value::Null);
    finds(&subject, some, &["zero"]).await
}

pub(super) async fn all_conditions_must_hold(subject: Subject) -> Case {
    for (key, a, b) in [("x", 1, 1), ("y", 1, 2), ("z", 2, 2)] {
        let value = map(&[("a", a.into()), ("b", b.into())]);
        subject.store.put(&ns(&["n"]), key, value).await?;
    }
    let both = Search::below(["n"]).filter("a", 1).compare("b", Comparison::Greater, 1);
    finds(&subject, both, &["y"]).await?;
    let between =
        Search::below(["n"]).compare("b", Comparison::Greater, 0).compare("b", Comparison::Less, 2);
    finds(&subject, between, &["x"]).await
}

pub(super) async fn filters_are_data(subject: Subject) -> Case {
    let value = map(&[("a.b", 1.into()), ("$gt", 2.into()), ("a", map(&[("b", 3.into())]))]);
    subject.store.put(&ns(&["n"]), "k", value).await?;
    finds(&subject, Search::below(["n"]).filter("a.b", 1), &["k"]).await?;
    finds(&subject, Search::below(["n"]).filter("a.b", 3), &[]).await?;
    finds(&subject, Search::below(["n"]).filter("$gt", 2), &["k"]).await?;
    finds(&subject, Search::below(["n"]).filter("a", map(&[("b", 3.into())])), &["k"]).await?;
    finds(&subject, Search::below(["n"]).filter("'; DROP TABLE store; --", 1), &[]).await?;
    finds(&subject, Search::below(["n"]).filter("a.b", 1), &["k"]).await
}

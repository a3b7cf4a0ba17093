//! Finding items by meaning.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use superstep_checkpoint::{
    AnyStore, Comparison, Distance, Error, Indexing, PutItem, Search, Value, VectorIndex,
};

use super::{Subject, keys, map, ns};
use crate::checkpointers::kit::{Case, ensure, same};

/// A text of numbers, such as `1 0`, means the point it names; anything else means the origin.
fn point(text: &str) -> Vec<f32> {
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0.0));
    vec![numbers.next().unwrap_or(0.0), numbers.next().unwrap_or(0.0)]
}

fn index(distance: Distance) -> VectorIndex {
    let embed = |texts: Vec<String>| async move {
        Ok::<_, Infallible>(texts.iter().map(|text| point(text)).collect())
    };
    VectorIndex::new(2, embed).fields(["at"]).distance(distance)
}

fn at(place: &str) -> Value {
    map(&[("at", place.into())])
}

async fn put(store: &AnyStore, places: &[(&str, &str)]) -> Case {
    for (key, place) in places {
        store.put(&ns(&["n"]), key, at(place)).await?;
    }
    Ok(())
}

async fn finds(store: &AnyStore, search: Search, wanted: &[&str]) -> Case {
    let found = store.search(search.clone()).await?;
    same(keys(&found), wanted.to_vec(), &format!("{search:?}"))?;
    let scores: Vec<f64> = found.iter().filter_map(|item| item.score).collect();
    same(scores.len(), wanted.len(), "the number of scores")?;
    ensure(scores.is_sorted_by(|a, b| a >= b), format_args!("scores {scores:?} are not in order"))
}

fn near(place: &str) -> Search {
    Search::below(["n"]).query(place)
}

pub(super) async fn the_nearest_comes_first(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::Cosine)).await?;
    put(&store, &[("north", "0 1"), ("east", "1 0"), ("north-east", "1 1"), ("south", "0 -1")])
        .await?;
    finds(&store, near("0 2"), &["north", "north-east", "east", "south"]).await?;
    finds(&store, near("0 2").limit(2), &["north", "north-east"]).await?;
    finds(&store, near("0 2").limit(1).offset(3), &["south"]).await?;
    let score = store.search(near("0 2")).await?.first().and_then(|item| item.score);
    let one = score.is_some_and(|score| (score - 1.0).abs() < 1e-6);
    ensure(one, format_args!("the score of the same direction is {score:?} and not 1"))
}

pub(super) async fn every_distance_puts_the_nearest_first(subject: Subject) -> Case {
    for (distance, wanted) in [
        (Distance::Cosine, ["far", "near", "other"]),
        (Distance::L2, ["near", "other", "far"]),
        (Distance::InnerProduct, ["far", "near", "other"]),
    ] {
        let store = subject.with_index(index(distance)).await?;
        put(&store, &[("other", "1 1.5"), ("near", "2 0.5"), ("far", "9 0.1")]).await?;
        finds(&store, near("2 0"), &wanted).await?;
    }
    Ok(())
}

pub(super) async fn an_item_is_as_near_as_the_nearest_of_its_texts(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::L2).fields(["at[*]", "also"])).await?;
    let places = |places: &[&str]| Value::List(places.iter().map(|at| Value::from(*at)).collect());
    let many = map(&[("at", places(&["9 9", "1 1", "5 5"])), ("also", "7 7".into())]);
    store.put(&ns(&["n"]), "many", many).await?;
    store.put(&ns(&["n"]), "one", map(&[("at", places(&["2 2"]))])).await?;
    finds(&store, near("1 1"), &["many", "one"]).await?;
    finds(&store, near("2 2"), &["one", "many"]).await?;
    finds(&store, near("7 7"), &["many", "one"]).await
}

pub(super) async fn a_vector_without_length_is_as_near_as_any(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::Cosine)).await?;
    put(&store, &[("nowhere", "0 0"), ("east", "1 0"), ("west", "-1 0")]).await?;
    finds(&store, near("1 0"), &["east", "nowhere", "west"]).await?;
    finds(&store, near("0 0"), &["nowhere", "east", "west"]).await
}

pub(super) async fn queries_and_filters_go_together(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::L2)).await?;
    for (nth, key) in (0..).zip(["a", "b", "c", "d"]) {
        let value = map(&[("at", format!("{nth} 0").into()), ("n", Value::Int(nth))]);
        store.put(&ns(&["n"]), key, value).await?;
    }
    store.put(&ns(&["m"]), "elsewhere", at("0 0")).await?;
    let search = near("0 0").compare("n", Comparison::Greater, 0).limit(2);
    finds(&store, search, &["b", "c"]).await
}

pub(super) async fn what_is_not_indexed_is_not_found_by_a_query(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::L2)).await?;
    put(&store, &[("in", "1 0")]).await?;
    store.put(&ns(&["n"]), "without the field", map(&[("x", "0 0".into())])).await?;
    store.put_item(PutItem::new(&ns(&["n"]), "off", at("0 0")).index(Indexing::Off)).await?;
    let other = map(&[("y", "0 1".into())]);
    let fields = Indexing::Fields(vec!["y".into()]);
    store.put_item(PutItem::new(&ns(&["n"]), "by y", other).index(fields)).await?;
    finds(&store, near("1 0"), &["in", "by y"]).await?;
    same(store.search(Search::below(["n"])).await?.len(), 4, "without a query")
}

pub(super) async fn an_item_that_is_put_again_is_found_by_its_new_text(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::L2)).await?;
    put(&store, &[("a", "0 0"), ("b", "3 0"), ("a", "9 0")]).await?;
    finds(&store, near("0 0"), &["b", "a"]).await?;
    store.put_item(PutItem::new(&ns(&["n"]), "b", at("3 0")).index(Indexing::Off)).await?;
    finds(&store, near("0 0"), &["a"]).await
}

pub(super) async fn a_deleted_item_leaves_no_vectors(subject: Subject) -> Case {
    let store = subject.with_index(index(Distance::L2)).await?;
    put(&store, &[("a", "0 0"), ("b", "1 0")]).await?;
    store.delete(&ns(&["n"]), "a").await?;
    finds(&store, near("0 0"), &["b"]).await?;
    store.put_item(PutItem::new(&ns(&["n"]), "a", at("0 0")).index(Indexing::Off)).await?;
    finds(&store, near("0 0"), &["b"]).await
}

pub(super) async fn equal_texts_are_embedded_once(subject: Subject) -> Case {
    let asked: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let log = asked.clone();
    let embed = move |texts: Vec<String>| {
        let vectors = texts.iter().map(|text| point(text)).collect();
        log.lock().unwrap_or_else(PoisonError::into_inner).push(texts);
        std::future::ready(Ok::<_, Infallible>(vectors))
    };
    let store = subject.with_index(VectorIndex::new(2, embed).fields(["at"])).await?;
    use superstep_checkpoint::StoreOp::Put;
    let put = |key: &str| Put(PutItem::new(&ns(&["n"]), key, at("1 0")));
    store.batch(vec![put("a"), put("b"), Put(PutItem::new(&ns(&["n"]), "c", at("0 1")))]).await?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    same(asked, vec![vec!["0 1".to_owned(), "1 0".to_owned()]], "the calls of the function")
}

pub(super) async fn a_function_that_fails_stores_nothing(subject: Subject) -> Case {
    let wrong = VectorIndex::new(2, |texts: Vec<String>| async move {
        Ok::<_, Infallible>(texts.iter().map(|_| vec![1.0, 2.0, 3.0]).collect())
    });
    let failing = VectorIndex::new(2, |_| async { Err("no such model") });
    for index in [wrong, failing] {
        let store = subject.with_index(index).await?;
        let refused = store.put(&ns(&["n"]), "k", at("1 0")).await;
        ensure(matches!(refused, Err(Error::Backend { .. })), "an item without vectors was kept")?;
        same(subject.store.get(&ns(&["n"]), "k").await?, None, "what is kept")?;
    }
    Ok(())
}

pub(super) async fn a_query_without_an_index_is_refused(subject: Subject) -> Case {
    let refused = subject.store.search(near("1 0")).await;
    ensure(matches!(refused, Err(Error::Invalid(_))), "a query was answered without an index")?;
    let fields = Indexing::Fields(vec!["at".into()]);
    let item = PutItem::new(&ns(&["n"]), "k", at("1 0")).index(fields);
    let refused = subject.store.put_item(item).await;
    ensure(matches!(refused, Err(Error::Invalid(_))), "fields were indexed without an index")
}

use tokio::time::advance;

use super::*;

fn key(ns: &str, key: &str) -> CacheKey {
    CacheKey { ns: vec!["writes".into(), ns.into()], key: key.into() }
}

fn writes(number: i64) -> CachedWrites {
    vec![("a".into(), Blob::encode(&number).expect("a blob"))]
}

async fn found(cache: &AnyCache, at: &CacheKey) -> Option<CachedWrites> {
    cache.get(at).await.expect("read")
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_found_until_its_time_is_over() {
    let cache = AnyCache::new(MemoryCache::new());
    let (short, long) = (key("n", "short"), key("n", "long"));
    cache.put(short.clone(), writes(1), Some(Duration::from_secs(2))).await.expect("stored");
    cache.put(long.clone(), writes(2), None).await.expect("stored");
    assert_eq!(found(&cache, &key("n", "other")).await, None);
    assert_eq!(found(&cache, &key("m", "short")).await, None);

    advance(Duration::from_millis(1_999)).await;
    assert_eq!(found(&cache, &short).await, Some(writes(1)));
    advance(Duration::from_millis(1)).await;
    assert_eq!(found(&cache, &short).await, None);
    assert_eq!(found(&cache, &long).await, Some(writes(2)));
}

#[tokio::test(start_paused = true)]
async fn a_later_entry_replaces_an_earlier_one_and_its_time() {
    let cache = AnyCache::new(MemoryCache::new());
    let at = key("n", "k");
    cache.put(at.clone(), writes(1), Some(Duration::ZERO)).await.expect("stored");
    assert_eq!(found(&cache, &at).await, None);
    cache.put(at.clone(), writes(1), Some(Duration::from_secs(1))).await.expect("stored");
    cache.put(at.clone(), writes(2), Some(Duration::MAX)).await.expect("stored");
    advance(Duration::from_secs(3600)).await;
    assert_eq!(found(&cache, &at).await, Some(writes(2)));
}

#[tokio::test]
async fn a_namespace_is_cleared_alone_or_with_all_others() {
    let cache = AnyCache::new(MemoryCache::new());
    let (one, two) = (key("one", "k"), key("two", "k"));
    for at in [&one, &two] {
        cache.put(at.clone(), writes(1), None).await.expect("stored");
    }
    cache.clear(Some(&["writes".into()])).await.expect("cleared");
    assert!(found(&cache, &one).await.is_some(), "a namespace above is another one");
    cache.clear(Some(&one.ns)).await.expect("cleared");
    assert_eq!(found(&cache, &one).await, None);
    assert!(found(&cache, &two).await.is_some());
    cache.clear(None).await.expect("cleared");
    assert_eq!(found(&cache, &two).await, None);
}

// Most keys are never asked for again, so expired entries must not pile up.
#[tokio::test(start_paused = true)]
async fn entries_that_are_over_do_not_pile_up() {
    let kept = MemoryCache::new();
    let cache = AnyCache::new(kept.clone());
    for number in 0..10_000 {
        let at = key("n", &number.to_string());
        cache.put(at, writes(number), Some(Duration::from_secs(1))).await.expect("stored");
        advance(Duration::from_secs(1)).await;
    }
    assert!(kept.lock().entries.len() < 100);
}

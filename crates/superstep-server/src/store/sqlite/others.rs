use super::SqliteStore;
use crate::store::Answer;
use crate::store::news::{News, NewsReader, Others, Progress};

/// One process serves a file. Others may take up its runs when it is dead, but none serves its readers.
impl Others for SqliteStore {
    fn has_others(&self) -> bool {
        false
    }

    fn tell(&self, _news: News) {}

    fn hear(&self) -> Answer<'_, Option<Box<dyn NewsReader>>> {
        Box::pin(async { Ok(None) })
    }

    fn follow(&self, _thread: &str, _run: &str) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn progress(&self, _runs: Vec<String>) -> Answer<'_, Vec<Progress>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

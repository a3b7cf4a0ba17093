//! Requests to a server that may be killed at any moment, and is somewhere else afterwards.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;

/// Where the server is. Clients wait for it while it is gone.
#[derive(Clone, Default)]
pub(crate) struct Place(Arc<(Mutex<Option<String>>, Condvar)>);

impl Place {
    pub(crate) fn is_at(&self, url: &str) {
        let address = url.strip_prefix("http://").expect("an address").to_owned();
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        self.0.1.notify_all();
    }

    pub(crate) fn is_gone(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn address(&self) -> String {
        let place = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.0.1.wait_while(place, |place| place.is_none());
        place.unwrap_or_else(PoisonError::into_inner).clone().expect("it is there")
    }
}

/// The connection broke: nobody knows whether the server did what it was asked for.
#[derive(Debug)]
pub(crate) struct Broken;

/// An answer whose body is still to be read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Where the run is that the request made, which acknowledges it.
    pub(crate) content_location: Option<String>,
    body: BufReader<TcpStream>,
}

pub(crate) fn ask(
    place: &Place,
    method: &str,
    path: &str,
    last: Option<&str>,
    body: &Json,
) -> Result<Answer, Broken> {
    let address = place.address();
    let mut stream = TcpStream::connect(&address).map_err(|_| Broken)?;
    // A server that hangs is a fault, which a client must not wait for forever.
    stream.set_read_timeout(Some(Duration::from_secs(120))).map_err(|_| Broken)?;
    let last = last.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    // An answer of the older version ends with its connection, and has no chunks.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n{last}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).map_err(|_| Broken)?;
    let mut body = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        match body.read_line(&mut line) {
            Ok(length) if length > 0 => Ok(line.trim_end().to_owned()),
            _ => Err(Broken),
        }
    };
    let status = line()?;
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(Broken)?;
    let mut content_location = None;
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(": ")
            && name.eq_ignore_ascii_case("content-location")
        {
            content_location = Some(value.to_owned());
        }
    }
    Ok(Answer { status, content_location, body })
}

impl Answer {
    /// The body, if it came to its end.
    pub(crate) fn json(mut self) -> Result<Json, Broken> {
        let mut text = String::new();
        self.body.read_to_string(&mut text).map_err(|_| Broken)?;
        serde_json::from_str(text.trim()).map_err(|_| Broken)
    }

    /// The next event: its id, its name and its data. Nothing at the end, which can be that of the server.
    pub(crate) fn event(&mut self) -> Option<(String, String, Json)> {
        let (mut name, mut data) = (String::new(), Json::Null);
        loop {
            let mut line = String::new();
            match self.body.read_line(&mut line) {
                Ok(length) if length > 0 && line.ends_with('\n') => {}
                _ => return None,
            }
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim_end().clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text.trim_end()).ok()?;
            } else if let Some(id) = line.strip_prefix("id: ") {
                return Some((id.trim_end().to_owned(), name, data));
            }
        }
    }
}

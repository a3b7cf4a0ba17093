//! The files of the page, as they are built into the program.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// A file of the page, as it is and compressed.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plain: &'static [u8],
    pub(crate) gzipped: &'static [u8],
}

macro_rules! file {
    ($name:literal, $kind:literal) => {
        File {
            name: $name,
            kind: $kind,
            plain: include_bytes!(concat!("../dist/", $name)),
            gzipped: include_bytes!(concat!("../dist/", $name, ".gz")),
        }
    };
}

pub(crate) const FILES: [File; 4] = [
    file!("index.html", "text/html; charset=utf-8"),
    file!("studio.js", "text/javascript; charset=utf-8"),
    file!("studio.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
];

impl File {
    /// Changes when the content does.
    pub(crate) fn etag(&self) -> String {
        let mut tag = String::from("\"");
        for byte in Sha256::digest(self.plain).iter().take(12) {
            // A string can be written to.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        tag
    }
}

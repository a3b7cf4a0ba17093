//! Where a webhook may go: to public hosts, unless the server is told otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::Uri;

use crate::error::{ApiError, ApiResult};

/// The longest address that is taken.
const LENGTH_MAX: usize = 2_048;

/// An address that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(super) uri: Uri,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
}

impl Target {
    /// Reads an address, and refuses what no webhook may go to.
    pub(crate) fn read(url: &str, allow_private: bool) -> ApiResult<Self> {
        let wrong = |why: &str| ApiError::invalid(format!("`webhook` is `{url}`, {why}"));
        if url.len() > LENGTH_MAX {
            return Err(ApiError::invalid(format!("`webhook` is longer than {LENGTH_MAX} bytes")));
        }
        let uri: Uri = url.parse().map_err(|_| wrong("which is no URL"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(wrong("which is neither http nor https")),
            None => return Err(wrong("which is no whole URL; give one with https and a host")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("which names a user; put secrets elsewhere"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("which has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let is_private = match host.parse::<IpAddr>() {
            Ok(address) => !is_public(address),
            Err(_) => is_local_name(&host),
        };
        if is_private && !allow_private {
            return Err(wrong(
                "a host of this machine or of a private network; the server has to be told that this is allowed",
            ));
        }
        Ok(Self { uri, host, port, tls })
    }
}

/// Names that never belong to a public host.
fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let ends = [".localhost", ".local", ".internal", ".home.arpa"];
    // Some resolvers read numbers such as `2130706433` and `0x7f.1` as addresses.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    host == "localhost"
        || !host.contains('.')
        || is_number
        || ends.iter().any(|end| host.ends_with(end))
}

/// Whether an address is one of the public network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocols = a == 192 && b == 0 && c == 0;
    let measured = a == 198 && (18..20).contains(&b);
    !(a == 0
        || a >= 240
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || shared
        || protocols
        || measured)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inside) = address.to_ipv4() {
        return is_public_v4(inside);
    }
    let [first, second, ..] = address.segments();
    // Ways to write an IPv4 address into an IPv6 one: the network in between sends it there.
    let translated =
        (first == 0x64 && second == 0xff9b) || first == 0x2002 || (first == 0x2001 && second == 0);
    // Only this part is given out.
    first & 0xe000 == 0x2000 && !translated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_go_to_public_hosts_only() {
        for url in [
            "https://example.com/hook",
            "http://example.com:8080/hook?x=1",
            "https://93.184.216.34/",
            "https://[2606:4700::1111]/",
        ] {
            Target::read(url, false).expect(url);
        }
        for url in [
            "",
            "/hook",
            "example.com/hook",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://",
            "https://me:secret@example.com/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://me.localhost/",
            "http://metadata.google.internal/",
            "http://router/",
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0x1/",
            "http://0.0.0.0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fe80::1]/",
            "http://[fd00::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
        ] {
            let error = Target::read(url, false).expect_err(url);
            assert!(error.detail.contains("`webhook`"), "{}", error.detail);
        }
        let allowed = Target::read("http://127.0.0.1:8080/x", true).expect("allowed");
        assert_eq!((&*allowed.host, allowed.port, allowed.tls), ("127.0.0.1", 8080, false));
        Target::read("ftp://127.0.0.1/", true).expect_err("still no scheme of ours");
    }
}

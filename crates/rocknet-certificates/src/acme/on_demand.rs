//! Permission for on-demand certificates: queries the operator's HTTP service (`tls.ask`) before a certificate is
//! ordered.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Queries `url` with `domain=NAME`. A 2xx response permits the certificate.
///
/// `url` has the form `http://host[:port]/path[?query]`; the check of the configuration refuses any other.
///
/// # Errors
/// Describes why there was no HTTP response.
pub async fn is_allowed(url: &str, name: &str) -> Result<bool, String> {
    let query = async {
        let (host, port, target) = parts(url).ok_or_else(|| format!("{url} is not an http:// URL"))?;
        let separator = if target.contains('?') { '&' } else { '?' };
        // The resolver expects an IPv6 address without its brackets.
        let bare_host = host.trim_start_matches('[').trim_end_matches(']');
        let failed = |error: std::io::Error| format!("{url}: {error}");
        let mut stream = TcpStream::connect((bare_host, port)).await.map_err(failed)?;
        // The handshake accepts only names of letters, digits, dots, `-` and `_`, which need no encoding.
        let request = format!(
            "GET {target}{separator}domain={name} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: RockNet\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let mut head = [0; STATUS_LINE];
        let mut read = 0;
        while read < head.len() {
            match stream.read(&mut head[read..]).await.map_err(failed)? {
                0 => break,
                more => read += more,
            }
        }
        status(&head[..read]).ok_or_else(|| format!("{url} did not send an HTTP response"))
    };
    let status = tokio::time::timeout(TIMEOUT, query)
        .await
        .map_err(|_| format!("{url} did not respond within {TIMEOUT:?}"))??;
    Ok((200..300).contains(&status))
}

/// Splits an `http://` URL into host, port and request target. The host keeps the brackets of an IPv6 address. Returns
/// `None` for other schemes, a missing host or an invalid port.
fn parts(url: &str) -> Option<(&str, u16, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, target) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.contains(']') => Some((host, port.parse().ok()?, target)),
        _ if authority.is_empty() || authority.starts_with(':') => None,
        _ => Some((authority, 80, target)),
    }
}

/// Returns the status code of an HTTP/1 status line; `None` if the bytes do not begin with one.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok()
}

/// Length of `HTTP/1.1 200` and the following space.
const STATUS_LINE: usize = 13;

/// Timeout of a query. The service only looks up a name, and no client waits for the response.
const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        for (url, expected) in [
            ("http://localhost:9123/ask", Some(("localhost", 9123, "/ask"))),
            ("http://10.0.0.1", Some(("10.0.0.1", 80, "/"))),
            ("http://[::1]:80/a?b=c", Some(("[::1]", 80, "/a?b=c"))),
            ("http://[::1]/", Some(("[::1]", 80, "/"))),
            ("https://localhost/", None),
            ("http://", None),
            ("http://:80/", None),
            ("http://a:x/", None),
        ] {
            assert_eq!(parts(url), expected, "{url}");
        }
    }

    #[test]
    fn status_lines_are_parsed() {
        for (head, expected) in [
            (&b"HTTP/1.1 200 "[..], Some(200)),
            (b"HTTP/1.0 404\r", Some(404)),
            (b"HTTP/1.1 2", None),
            (b"SSH-2.0-x", None),
            (b"", None),
        ] {
            assert_eq!(status(head), expected);
        }
    }
}

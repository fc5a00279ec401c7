//! Access log records: the data of one exchange, and its line in each format.

use super::stamp::Stamps;
use super::{escape, number};

/// Data of one exchange for the access log. All fields are borrowed, because a record is formatted immediately.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Address of the client as text, formatted once per connection; empty for Unix sockets.
    pub client: &'a str,
    /// Name of the authenticated user; `None` without authentication.
    pub user: Option<&'a [u8]>,
    /// Method of the request; empty if no request line could be parsed.
    pub method: &'a [u8],
    /// Request target as received.
    pub target: &'a [u8],
    /// Protocol version: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.
    pub version: &'a str,
    /// TLS version, such as `TLSv1.3`; `None` without TLS.
    pub tls: Option<&'a str>,
    /// Status code; 0 if no response began.
    pub status: u16,
    /// Bytes of the request body that were received.
    pub received_bytes: u64,
    /// Bytes of the response body that were sent, without framing.
    pub sent_bytes: u64,
    /// Value of the `Referer` header field, if the request has one.
    pub referer: Option<&'a [u8]>,
    /// Value of the `User-Agent` header field, if the request has one.
    pub user_agent: Option<&'a [u8]>,
    /// Requested host and port; empty if no request could be parsed.
    pub host: &'a [u8],
    /// Configured address of the upstream that the request was forwarded to, or `php:` and the name of a PHP pool;
    /// `None` if the request was not forwarded.
    pub upstream: Option<&'a str>,
    /// Time in microseconds from sending the request to the upstream until the head of its response; `None` if no head
    /// arrived.
    pub upstream_us: Option<u64>,
    /// Outcome of the request in the response cache, such as `HIT`; empty without a cache.
    pub cache_status: &'a str,
    /// Time in microseconds from the head of the request until the whole response was queued for the socket; `None` if
    /// there was no valid request.
    pub duration_us: Option<u64>,
}

/// Format of a line that needs only its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainFormat {
    /// The Common Log Format.
    Common,
    /// The Common Log Format with `Referer` and `User-Agent`.
    Combined,
    /// One JSON object.
    Json,
}

/// Maximum length in bytes of the names, punctuation, times and numbers in a line, so that one reservation covers them.
const FIXED_PARTS: usize = 340;

/// Appends the line of `record` with its newline.
#[inline]
pub(super) fn render(format: PlainFormat, stamps: &Stamps, record: &Record<'_>, out: &mut Vec<u8>) {
    out.reserve(FIXED_PARTS + record.target.len());
    match format {
        PlainFormat::Common => common(stamps, record, out),
        PlainFormat::Combined => {
            common(stamps, record, out);
            out.extend_from_slice(b" \"");
            escape::within_quotes(out, record.referer.unwrap_or(b"-"));
            out.extend_from_slice(b"\" \"");
            escape::within_quotes(out, record.user_agent.unwrap_or(b"-"));
            out.push(b'"');
        }
        PlainFormat::Json => json(stamps, record, out),
    }
    out.push(b'\n');
}

/// Appends the common log format: Apache's `%h %l %u %t "%r" %>s %b`.
fn common(stamps: &Stamps, record: &Record<'_>, out: &mut Vec<u8>) {
    // An empty address or name would omit a column.
    escape::word(
        out,
        if record.client.is_empty() {
            b"-"
        } else {
            record.client.as_bytes()
        },
    );
    match record.user {
        None => out.extend_from_slice(b" - - "),
        Some(user) => {
            out.extend_from_slice(b" - ");
            escape::word(out, if user.is_empty() { b"-" } else { user });
            out.push(b' ');
        }
    }
    out.extend_from_slice(&stamps.clf);
    out.extend_from_slice(b" \"");
    if record.method.is_empty() {
        out.push(b'-');
    } else {
        escape::word(out, record.method);
        out.push(b' ');
        escape::word(out, record.target);
        out.push(b' ');
        escape::word(out, record.version.as_bytes());
    }
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(&number::status(record.status));
    out.push(b' ');
    if record.sent_bytes == 0 {
        out.push(b'-');
    } else {
        number::decimal(out, record.sent_bytes);
    }
}

/// Appends one JSON object. All members are present, so that consumers can rely on them; an optional value that is
/// missing is `null`.
fn json(stamps: &Stamps, record: &Record<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(&stamps.rfc3339);
    out.extend_from_slice(b"\",\"client\":");
    escape::json(out, record.client.as_bytes());
    out.extend_from_slice(b",\"user\":");
    json_option(out, record.user);
    out.extend_from_slice(b",\"protocol\":");
    escape::json(out, protocol(record.version).as_bytes());
    out.extend_from_slice(b",\"tls\":");
    json_option(out, record.tls.map(str::as_bytes));
    out.extend_from_slice(b",\"method\":");
    escape::json(out, record.method);
    out.extend_from_slice(b",\"target\":");
    escape::json(out, record.target);
    out.extend_from_slice(b",\"host\":");
    escape::json(out, record.host);
    out.extend_from_slice(b",\"status\":");
    number::decimal(out, u64::from(record.status));
    out.extend_from_slice(b",\"bytes_received\":");
    number::decimal(out, record.received_bytes);
    out.extend_from_slice(b",\"bytes_sent\":");
    number::decimal(out, record.sent_bytes);
    out.extend_from_slice(b",\"referer\":");
    json_option(out, record.referer);
    out.extend_from_slice(b",\"user_agent\":");
    json_option(out, record.user_agent);
    out.extend_from_slice(b",\"upstream\":");
    json_option(out, record.upstream.map(str::as_bytes));
    out.extend_from_slice(b",\"upstream_us\":");
    json_number(out, record.upstream_us);
    out.extend_from_slice(b",\"cache\":");
    json_option(
        out,
        Some(record.cache_status.as_bytes()).filter(|status| !status.is_empty()),
    );
    out.extend_from_slice(b",\"duration_us\":");
    json_number(out, record.duration_us);
    out.push(b'}');
}

/// Returns the name of the protocol, which has no minor version since HTTP/2 (RFC 9110 §2.5).
fn protocol(version: &str) -> &str {
    match version {
        "HTTP/2.0" => "HTTP/2",
        "HTTP/3.0" => "HTTP/3",
        version => version,
    }
}

fn json_number(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(number) => number::decimal(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

fn json_option(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(bytes) => escape::json(out, bytes),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Record<'static> = Record {
        client: "127.0.0.1",
        user: None,
        method: b"GET",
        target: b"/apache_pb.gif",
        version: "HTTP/1.0",
        tls: None,
        status: 200,
        received_bytes: 0,
        sent_bytes: 2326,
        referer: None,
        user_agent: None,
        host: b"example.com",
        upstream: None,
        upstream_us: None,
        cache_status: "",
        duration_us: None,
    };

    fn line(format: PlainFormat, record: &Record<'_>) -> String {
        let zone = Offset::from_seconds(-7 * 3600).expect("an offset").to_time_zone();
        let mut out = Vec::new();
        render(format, &Stamps::new(zone, 971_211_336_000), record, &mut out);
        String::from_utf8(out).expect("lines are ASCII")
    }

    #[test]
    fn each_format_has_its_expected_line() {
        let frank = Record {
            user: Some(b"frank"),
            referer: Some(b"http://www.example.com/start.html"),
            user_agent: Some(b"Mozilla/4.08 [en] (Win98; I ;Nav)"),
            duration_us: Some(1500),
            ..PLAIN
        };
        let proxied = Record {
            version: "HTTP/2.0",
            tls: Some("TLSv1.3"),
            received_bytes: 70_000,
            upstream: Some("10.0.0.1:3000"),
            upstream_us: Some(900),
            cache_status: "MISS",
            ..frank
        };
        let unread = Record {
            method: b"",
            target: b"",
            version: "",
            status: 400,
            sent_bytes: 0,
            ..PLAIN
        };
        let hostile = Record {
            user: Some(b"a \"b\""),
            target: b"/x\" 200 1\n10.0.0.1 - - [",
            user_agent: Some(b"\x1B]0;owned\x07\\"),
            host: b"a\xFFb\"",
            ..PLAIN
        };
        let ipv6 = Record {
            client: "2001:db8::1",
            user: Some(b""),
            status: 0,
            sent_bytes: u64::MAX,
            ..PLAIN
        };
        use PlainFormat::{Combined, Common, Json};
        for (format, record, expected) in [
            (
                Common,
                &PLAIN,
                r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            ),
            (
                Common,
                &frank,
                r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            ),
            (
                Combined,
                &frank,
                r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#,
            ),
            (
                Combined,
                &unread,
                r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "-" 400 - "-" "-""#,
            ),
            (
                Combined,
                &hostile,
                r#"127.0.0.1 - a\x20\x22b\x22 [10/Oct/2000:13:55:36 -0700] "GET /x\x22\x20200\x201\x0A10.0.0.1\x20-\x20-\x20[ HTTP/1.0" 200 2326 "-" "\x1B]0;owned\x07\x5C""#,
            ),
            (
                Common,
                &ipv6,
                r#"2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 000 18446744073709551615"#,
            ),
            (
                Json,
                &PLAIN,
                r#"{"time":"2000-10-10T13:55:36-07:00","client":"127.0.0.1","user":null,"protocol":"HTTP/1.0","tls":null,"method":"GET","target":"/apache_pb.gif","host":"example.com","status":200,"bytes_received":0,"bytes_sent":2326,"referer":null,"user_agent":null,"upstream":null,"upstream_us":null,"cache":null,"duration_us":null}"#,
            ),
            (
                Json,
                &proxied,
                r#"{"time":"2000-10-10T13:55:36-07:00","client":"127.0.0.1","user":"frank","protocol":"HTTP/2","tls":"TLSv1.3","method":"GET","target":"/apache_pb.gif","host":"example.com","status":200,"bytes_received":70000,"bytes_sent":2326,"referer":"http://www.example.com/start.html","user_agent":"Mozilla/4.08 [en] (Win98; I ;Nav)","upstream":"10.0.0.1:3000","upstream_us":900,"cache":"MISS","duration_us":1500}"#,
            ),
            (
                Json,
                &hostile,
                r#"{"time":"2000-10-10T13:55:36-07:00","client":"127.0.0.1","user":"a \"b\"","protocol":"HTTP/1.0","tls":null,"method":"GET","target":"/x\" 200 1\u000a10.0.0.1 - - [","host":"a\\xFFb\"","status":200,"bytes_received":0,"bytes_sent":2326,"referer":null,"user_agent":"\u001b]0;owned\u0007\\","upstream":null,"upstream_us":null,"cache":null,"duration_us":null}"#,
            ),
        ] {
            assert_eq!(line(format, record), format!("{expected}\n"));
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..64)
    }

    proptest! {
        #[test]
        fn any_record_is_one_line(
            client in any::<String>(), version in any::<String>(), user in prop::option::of(bytes()), method in bytes(),
            target in bytes(), referer in prop::option::of(bytes()), user_agent in prop::option::of(bytes()),
            host in bytes(), status: u16, sent_bytes: u64, duration_us: Option<u64>,
            upstream in prop::option::of(any::<String>()),
        ) {
            let record = Record {
                client: &client, user: user.as_deref(), method: &method, target: &target, version: &version, status,
                sent_bytes, referer: referer.as_deref(), user_agent: user_agent.as_deref(), host: &host, duration_us,
                upstream: upstream.as_deref(), ..PLAIN
            };
            for format in [PlainFormat::Common, PlainFormat::Combined, PlainFormat::Json] {
                let line = line(format, &record);
                prop_assert!(line.ends_with('\n'));
                prop_assert!(line[..line.len() - 1].bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
            let combined = line(PlainFormat::Combined, &record);
            prop_assert_eq!(combined.matches('"').count(), 6);
            let unquoted = combined.split('"').next().expect("a first part");
            // Client, `-`, user, date, time zone, and nothing after the last space.
            prop_assert_eq!(unquoted.split(' ').count(), 6);
            let value: serde_json::Value = serde_json::from_str(&line(PlainFormat::Json, &record)).expect("valid JSON");
            prop_assert_eq!(value["client"].as_str(), Some(client.as_str()));
            prop_assert_eq!(value["bytes_sent"].as_u64(), Some(sent_bytes));
            prop_assert_eq!(value["duration_us"].as_u64(), duration_us);
            prop_assert_eq!(value["upstream"].as_str(), upstream.as_deref());
            if let Ok(target) = std::str::from_utf8(&target) {
                prop_assert_eq!(value["target"].as_str(), Some(target));
            }
        }
    }
}

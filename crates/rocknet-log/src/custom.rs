//! Access-log lines in a format of the operator: a template whose values are escaped for their place in the line.

use std::borrow::Cow;
use std::sync::Arc;

use rocknet_config::template::{Piece, Placeholder, Scope, Template, Values};

use super::record::Record;
use super::stamp::Stamps;
use super::{escape, number};

/// A compiled format of lines.
#[derive(Debug)]
pub(super) struct CustomFormat {
    /// The line as written, by which equal formats are found.
    text: Box<str>,
    pieces: Box<[LinePiece]>,
}

#[derive(Debug)]
enum LinePiece {
    Text(Box<str>),
    Value(Placeholder, Escaping),
}

/// Escaping of a value, which depends on its place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escaping {
    /// The value ends at the next space.
    Word,
    /// The value ends at the next quote.
    Quoted,
    /// String of JSON, between quotes of the line.
    JsonString,
    /// Number of JSON, or `null`.
    JsonNumber,
    /// `null` if it is empty, or else a string of JSON with quotes. A client must not choose the type of a value.
    Json,
}

/// Formats of all access logs. A configuration names a format by its text. No format is removed, so that its number
/// stays valid for requests of an earlier configuration. There are few, because an operator writes each.
#[derive(Debug, Default)]
pub(super) struct CustomFormats(Vec<Arc<CustomFormat>>);

impl CustomFormats {
    /// Returns the number of a format, which is added if it is new.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let known = self.0.iter().position(|format| *format.text == *text);
        let index = known.unwrap_or_else(|| {
            self.0.push(Arc::new(CustomFormat::new(text)));
            self.0.len() - 1
        });
        index as u32
    }

    /// Returns all formats, in the order of their numbers.
    pub(super) fn all(&self) -> &[Arc<CustomFormat>] {
        &self.0
    }
}

impl CustomFormat {
    fn new(text: &str) -> CustomFormat {
        // The check of the configuration has refused invalid templates.
        let template = Template::parse(text, Scope::Log).unwrap_or_else(|_| Template::constant(text));
        // A line of JSON begins with `{` and a quote, and a placeholder with `{` and a letter.
        let is_json = text
            .strip_prefix('{')
            .is_some_and(|rest| rest.trim_start().starts_with('"'));
        let mut is_quoted = false;
        let pieces = template.pieces().iter().map(|piece| match piece {
            Piece::Text(text) => {
                is_quoted ^= !text.matches('"').count().is_multiple_of(2);
                LinePiece::Text(text.clone())
            }
            Piece::Value(placeholder) => {
                let escaping = match (is_json, is_quoted) {
                    // The value is `[10/Oct/2000:13:55:36 -0700]`, and `Word` would escape its space.
                    (false, false) if *placeholder == Placeholder::ClfTime => Escaping::Quoted,
                    (false, false) => Escaping::Word,
                    (false, true) => Escaping::Quoted,
                    (true, true) => Escaping::JsonString,
                    (true, false) if placeholder.is_number() => Escaping::JsonNumber,
                    (true, false) => Escaping::Json,
                };
                LinePiece::Value(placeholder.clone(), escaping)
            }
        });
        CustomFormat {
            text: text.into(),
            pieces: pieces.collect(),
        }
    }

    /// Appends the line of a record, without its newline. `values`: values that the record does not have, such as
    /// header fields.
    pub(super) fn render(&self, stamps: &Stamps, record: &Record<'_>, values: &dyn Values, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                LinePiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                LinePiece::Value(placeholder, escaping) => {
                    escaping.push(&value(placeholder, stamps, record, values), out);
                }
            }
        }
    }
}

impl Escaping {
    fn push(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Escaping::Word if value.is_empty() => out.push(b'-'),
            Escaping::Quoted if value.is_empty() => out.push(b'-'),
            Escaping::Word => escape::word(out, value),
            Escaping::Quoted => escape::within_quotes(out, value),
            Escaping::Json | Escaping::JsonNumber if value.is_empty() => out.extend_from_slice(b"null"),
            // The server writes these values itself, so they are numbers.
            Escaping::JsonNumber => out.extend_from_slice(value),
            Escaping::Json => escape::json(out, value),
            Escaping::JsonString => {
                // The quotes are those of the line.
                let start = out.len();
                escape::json(out, value);
                out.pop();
                out.remove(start);
            }
        }
    }
}

/// Returns a value of the record, or another one from `values`.
fn value<'v>(
    placeholder: &Placeholder,
    stamps: &'v Stamps,
    record: &Record<'v>,
    values: &'v dyn Values,
) -> Cow<'v, [u8]> {
    let decimal = |value: u64| {
        let mut out = Vec::new();
        number::decimal(&mut out, value);
        Cow::Owned(out)
    };
    let seconds = |microseconds: Option<u64>| match microseconds {
        Some(time) => Cow::Owned(format!("{}.{:06}", time / 1_000_000, time % 1_000_000).into_bytes()),
        None => Cow::Borrowed(&b""[..]),
    };
    match placeholder {
        Placeholder::ClientIp => Cow::Borrowed(record.client.as_bytes()),
        Placeholder::User => Cow::Borrowed(record.user.unwrap_or_default()),
        Placeholder::Method => Cow::Borrowed(record.method),
        Placeholder::Protocol => Cow::Borrowed(record.version.as_bytes()),
        Placeholder::TlsVersion => Cow::Borrowed(record.tls.unwrap_or_default().as_bytes()),
        Placeholder::Status => decimal(u64::from(record.status)),
        Placeholder::BytesReceived => decimal(record.received_bytes),
        Placeholder::BytesSent => decimal(record.sent_bytes),
        Placeholder::Upstream => Cow::Borrowed(record.upstream.unwrap_or_default().as_bytes()),
        Placeholder::UpstreamDuration => seconds(record.upstream_us),
        Placeholder::CacheStatus => Cow::Borrowed(record.cache_status.as_bytes()),
        Placeholder::Duration => seconds(record.duration_us),
        Placeholder::Time => Cow::Borrowed(&stamps.rfc3339),
        Placeholder::ClfTime => Cow::Borrowed(&stamps.clf),
        other => values.value(other),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use rocknet_config::template::NoValues;

    use super::*;

    /// The value of each placeholder that the record does not have.
    struct All(&'static [u8]);

    impl Values for All {
        fn value(&self, _: &Placeholder) -> Cow<'_, [u8]> {
            Cow::Borrowed(self.0)
        }
    }

    const RECORD: Record<'static> = Record {
        client: "192.0.2.1",
        user: None,
        method: b"GET",
        target: b"/a?b",
        version: "HTTP/1.1",
        tls: None,
        status: 200,
        received_bytes: 0,
        sent_bytes: 5,
        referer: None,
        user_agent: None,
        host: b"a.test",
        upstream: None,
        upstream_us: Some(1_500),
        cache_status: "HIT",
        duration_us: Some(2_000_001),
    };

    fn line(format: &str, values: &dyn Values) -> String {
        let mut out = Vec::new();
        let stamps = Stamps::new(TimeZone::UTC, 971_186_136_000);
        CustomFormat::new(format).render(&stamps, &RECORD, values, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn values_are_escaped_for_their_place() {
        let hostile = All(b"a b\" \\\n\xff");
        // Format, and the line.
        for (format, expected) in [
            (
                "{client.ip} {user} {time.clf} \"{method} {protocol}\" {status} {bytes.sent} {duration}",
                "192.0.2.1 - [10/Oct/2000:13:55:36 +0000] \"GET HTTP/1.1\" 200 5 2.000001",
            ),
            (
                "{host}|\"{host}\"|{user}|\"{user}\"",
                r#"a\x20b\x22\x20\x5C\x0A\xFF|"a b\x22 \x5C\x0A\xFF"|-|"-""#,
            ),
            (
                r#"{"time":"{time}","status":{status},"user":{user},"name":"{user}","host":{host},"h":"<{host}>","t":{upstream.duration}}"#,
                r#"{"time":"2000-10-10T13:55:36+00:00","status":200,"user":null,"name":"","host":"a b\" \\\u000a\\xFF","h":"<a b\" \\\u000a\\xFF>","t":0.001500}"#,
            ),
        ] {
            assert_eq!(line(format, &hostile), expected);
        }
        let json = line(r#"{"host":{host},"h":"{host}"}"#, &hostile);
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(value["host"], value["h"]);
        assert_eq!(line("{host}", &NoValues), "-");
    }

    #[test]
    fn a_client_does_not_choose_the_type_of_a_value() {
        let number = All(b"5");
        assert_eq!(
            line(r#"{"a":{request.header.A},"s":{status}}"#, &number),
            r#"{"a":"5","s":200}"#
        );
    }

    #[test]
    fn equal_formats_have_one_number() {
        let mut formats = CustomFormats::default();
        let numbers = ["{host}", "{path}", "{host}"].map(|text| formats.number(text));
        assert_eq!((numbers, formats.all().len()), ([0, 1, 0], 2));
    }
}

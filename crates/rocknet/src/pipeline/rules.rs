//! Responses of rules with the action `respond`.

use bytes::Bytes;
use rocknet_config::template::{Template, Values};
use rocknet_proto::status::Status;

use crate::fixed;
use crate::response::{Body, Response};
use crate::route::Route;

/// Status by which nginx logs requests without a response. No client receives it.
const NO_RESPONSE: u16 = 444;

/// Function that appends a value to a body.
type Escape = fn(&[u8], &mut Vec<u8>);

/// Returns the response of a rule with a status and an optional text. Without a text, a status of an error gets the
/// error page, and any other status an empty body. 500 replaces a number that is not a valid status. With 444 the
/// client gets no response. `values`: values of the request for placeholders, which are escaped for the media type that
/// the route configures.
pub(super) fn response(status: u16, body: Option<&Template>, values: &dyn Values, route: &Route) -> Response {
    let closes = status == NO_RESPONSE;
    let status = Status::new(status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
    if closes {
        return Response::new(status).body(Body::Abort);
    }
    match body {
        Some(template) => {
            let mut text = Vec::new();
            template.render(values, &mut text, escape(route));
            Response::new(status)
                .with("Content-Type", "text/plain; charset=utf-8")
                .with("X-Content-Type-Options", "nosniff")
                .body(Bytes::from(text))
        }
        None if status.is_error() => fixed::error(status),
        None => Response::new(status),
    }
}

/// Returns the escaping for the media type of the route's own `Content-Type`. Plain text, the default, needs none: the
/// response forbids clients to guess another type.
fn escape(route: &Route) -> Escape {
    let mut types = route
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    let Some((_, configured)) = types.next() else {
        return push_plain;
    };
    let configured = configured.as_constant().unwrap_or_default();
    let essence = configured.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "text/plain" => push_plain,
        "text/html" | "text/xml" | "application/xml" => push_markup,
        "application/json" | "application/javascript" | "text/javascript" => push_json,
        suffixed if suffixed.ends_with("+xml") => push_markup,
        suffixed if suffixed.ends_with("+json") => push_json,
        _ => push_safe,
    }
}

fn push_plain(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(value);
}

/// Appends a value for a media type whose syntax is not known. All characters but those of words, numbers and addresses
/// are replaced by `_`.
fn push_safe(value: &[u8], out: &mut Vec<u8>) {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._: ".contains(&byte);
    out.extend(value.iter().map(|&byte| if is_safe(byte) { byte } else { b'_' }));
}

/// Appends a value for HTML or XML, inside an element or a quoted attribute.
fn push_markup(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            _ => out.push(byte),
        }
    }
}

/// Appends a value for a string of JSON or JavaScript, without its quotes. Bytes that are not UTF-8 become the
/// replacement character. `<` is escaped too, so that `</script>` does not end a script. `'`, `` ` `` and `$` are
/// escaped for the other kinds of strings in JavaScript.
fn push_json(value: &[u8], out: &mut Vec<u8>) {
    for char in String::from_utf8_lossy(value).chars() {
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            '\0'..='\x1f' | '<' | '\'' | '`' | '$' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(char)).as_bytes());
            }
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_their_text() {
        let (mut markup, mut json) = (Vec::new(), Vec::new());
        push_markup(b"<a href=\"x\">'&'", &mut markup);
        push_json(b"a\"b\\c\n</script>\xff'`${", &mut json);
        assert_eq!(markup, b"&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        assert_eq!(
            String::from_utf8_lossy(&json),
            "a\\\"b\\\\c\\u000a\\u003c/script>\u{fffd}\\u0027\\u0060\\u0024{"
        );
        let quoted = [b"\"", &json[..], b"\""].concat();
        let value: serde_json::Value = serde_json::from_slice(&quoted).expect("a JSON string");
        assert_eq!(value.as_str(), Some("a\"b\\c\n</script>\u{fffd}'`${"));
        let mut safe = Vec::new();
        push_safe(b"a.b-c_d:1 }<;\\", &mut safe);
        assert_eq!(safe, b"a.b-c_d:1 ____");
    }
}

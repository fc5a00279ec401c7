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
    let Some(configured) = types
        .next()
        .map(|(_, template)| template.as_constant().unwrap_or_default())
    else {
        return |value, out| out.extend_from_slice(value);
    };
    let essence = configured
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "text/plain" | "text/csv" => |value, out| out.extend_from_slice(value),
        json if json == "application/json" || json.ends_with("+json") => push_json,
        // Markup, and everything else in which the characters of markup may have a meaning.
        _ => push_markup,
    }
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

/// Appends a value for a string of JSON, without quotes. Bytes that are not UTF-8 become the replacement character. `<`
/// is escaped too, so that the text can stand in a script of a page.
fn push_json(value: &[u8], out: &mut Vec<u8>) {
    for char in String::from_utf8_lossy(value).chars() {
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            '\0'..='\x1f' | '<' | '\u{2028}' | '\u{2029}' => {
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
        push_json(b"a\"b\\c\n</script>\xff", &mut json);
        assert_eq!(markup, b"&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        assert_eq!(
            String::from_utf8_lossy(&json),
            "a\\\"b\\\\c\\u000a\\u003c/script>\u{fffd}"
        );
        let quoted = [b"\"", &json[..], b"\""].concat();
        let value: serde_json::Value = serde_json::from_slice(&quoted).expect("a JSON string");
        assert_eq!(value.as_str(), Some("a\"b\\c\n</script>\u{fffd}"));
    }
}

//! Error pages, which show the status and its meaning in plain words.

use super::text::{push_html, push_template};

/// Appends the page for `status` to `out`.
///
/// `hint` is an additional sentence for the visitor. It may quote the request, because it is escaped and truncated to
/// 240 characters.
pub fn render(status: u16, reason: &str, hint: Option<&str>, out: &mut Vec<u8>) {
    let parts = ErrorPageParts {
        meaning: &|out| push_html(out, meaning(status)),
        hint: &|out| {
            if let Some(hint) = hint {
                push_hint(out, hint);
            }
        },
        style: "",
    };
    render_parts(status, reason, &parts, out);
}

/// A function that appends escaped HTML.
type Push<'a> = &'a dyn Fn(&mut Vec<u8>);

/// The parts of an error page that differ between pages of the same status.
pub(super) struct ErrorPageParts<'a> {
    /// Writes the content of the first paragraph.
    pub meaning: Push<'a>,
    /// Writes the elements after the first paragraph.
    pub hint: Push<'a>,
    /// Additional rules for the style sheet.
    pub style: &'static str,
}

/// Appends the page for `status` with these parts to `out`.
pub(super) fn render_parts(status: u16, reason: &str, parts: &ErrorPageParts<'_>, out: &mut Vec<u8>) {
    out.reserve(PAGE.len() + RESERVE);
    push_template(out, PAGE, |key, out| match key {
        "status" => out.extend_from_slice(status.to_string().as_bytes()),
        "reason" => push_html(out, reason),
        "style" => out.extend_from_slice(parts.style.as_bytes()),
        "meaning" => (parts.meaning)(out),
        "hint" => (parts.hint)(out),
        _ => {}
    });
}

/// Appends a hint as a paragraph, escaped and truncated.
fn push_hint(out: &mut Vec<u8>, hint: &str) {
    out.extend_from_slice(b"<p>");
    match hint.char_indices().nth(HINT_CHARS) {
        Some((end, _)) => {
            push_html(out, &hint[..end]);
            out.extend_from_slice("…".as_bytes());
        }
        None => push_html(out, hint),
    }
    out.extend_from_slice(b"</p>");
}

/// Returns the meaning of a status for a visitor, and what the visitor can do.
fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The browser sent something this server could not read as a request.",
        401 => "This page asks who you are. Sign in and try again.",
        403 => "The page exists, but it is not open to you.",
        404 => "There is nothing at this address. It may have moved, or the address has a typing mistake.",
        405 => "This address does not accept that kind of request.",
        408 => "The request took too long to arrive, so the server stopped waiting. Try again.",
        413 => "What you sent is larger than this site accepts.",
        414 => "The address is too long. Try it without the part after the question mark.",
        416 => "The requested part of the file does not exist. Restart the download from the beginning.",
        421 => "This connection belongs to another site. Open the page in a new window.",
        429 => "You sent more requests than this site allows for now. Wait a moment, then try again.",
        431 => "The browser sent too much with the request. Clearing this site's cookies often helps.",
        500 => "Something went wrong on the server. It is not your fault; try again in a while.",
        502 => "The program behind this page sent no valid response. Try again in a while.",
        503 => "The server is too busy or under repair. Try again in a moment.",
        504 => "The program behind this page took too long to respond. Try again in a while.",
        status if status >= 500 => "The server could not complete the request. Try again in a while.",
        _ => "The server could not handle this request as it was sent.",
    }
}

/// Maximum length of a hint in characters: about two sentences. Without a limit, a hint could quote a request target of
/// 8 KiB.
const HINT_CHARS: usize = 240;

/// Number of bytes reserved in addition to the template, so that most pages need one allocation.
const RESERVE: usize = 256;

const PAGE: &str = include_str!("assets/error.html");

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of a page in bytes. With its header section, a page must fit into the first flight of a connection,
    /// with room to spare.
    const PAGE_LIMIT: usize = 1536;

    fn page(status: u16, reason: &str, hint: Option<&str>) -> String {
        let mut out = Vec::new();
        render(status, reason, hint, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn common_statuses_have_specific_texts() {
        let generic = [meaning(418), meaning(599)];
        let rows = [
            (400, "Bad Request"),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "Not Found"),
            (405, "Method Not Allowed"),
            (408, "Request Timeout"),
            (413, "Content Too Large"),
            (414, "URI Too Long"),
            (416, "Range Not Satisfiable"),
            (421, "Misdirected Request"),
            (429, "Too Many Requests"),
            (431, "Request Header Fields Too Large"),
            (500, "Internal Server Error"),
            (502, "Bad Gateway"),
            (503, "Service Unavailable"),
            (504, "Gateway Timeout"),
        ];
        for (status, reason) in rows {
            let page = page(status, reason, None);
            assert!(
                !generic.contains(&meaning(status)),
                "{status} has only the generic text"
            );
            assert!(
                page.contains(&format!("<title>{status} {reason}</title>")),
                "{status}: {page}"
            );
            assert!(
                page.contains(&format!("<b>{status}</b><h1>{reason}</h1><p>")),
                "{status}: {page}"
            );
            assert!(page.len() < PAGE_LIMIT, "{status}: {} bytes", page.len());
            assert!(!page.contains("{{"), "{status}: a placeholder was not replaced");
        }
    }

    #[test]
    fn any_status_has_a_page() {
        for (status, expected) in [
            (0, meaning(499)),
            (418, meaning(499)),
            (451, meaning(499)),
            (507, meaning(599)),
            (u16::MAX, meaning(599)),
        ] {
            assert!(page(status, "", None).contains(expected), "{status}");
        }
    }

    #[test]
    fn hints_are_escaped_and_bounded() {
        let long = "é".repeat(HINT_CHARS + 1);
        let truncated = format!("<p>{}…</p>", "é".repeat(HINT_CHARS));
        let whole = "é".repeat(HINT_CHARS);
        let untruncated = format!("<p>{whole}</p>");
        let rows: [(Option<&str>, &str); 6] = [
            (None, "mistake.</p></main>"),
            (Some("Allowed: GET, HEAD"), "<p>Allowed: GET, HEAD</p></main>"),
            (
                Some("<script>alert(1)</script>"),
                "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
            ),
            (Some("{{status}}"), "<p>{{status}}</p>"),
            (Some(&long), &truncated),
            (Some(&whole), &untruncated),
        ];
        for (hint, expected) in rows {
            let page = page(404, "Not Found", hint);
            assert!(page.contains(expected), "{hint:?}: {page}");
            assert!(!page.contains("<script"), "{hint:?}");
        }
        assert!(page(400, "<b>\"", None).contains("<title>400 &lt;b&gt;&quot;</title>"));
    }

    #[test]
    fn pages_are_appended() {
        let mut out = b"head".to_vec();
        render(404, "Not Found", None, &mut out);
        assert!(out.starts_with(b"head<!doctype html>"));
    }
}

//! Escapes text for HTML, URLs and JSON, and fills templates.

/// Appends `text` as HTML text or as a quoted attribute value.
///
/// Control characters become U+FFFD, and so do invisible format characters and bidirectional controls, which would hide
/// or reorder text: `photo<U+202E>gpj.exe` must not appear as `photoexe.jpg`.
pub fn push_html(out: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        push_html_char(out, c);
    }
}

/// Appends text like [`push_html`], but keeps line breaks and tabs, for a `pre` element. Carriage returns are dropped.
pub fn push_html_lines(out: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        match c {
            '\n' | '\t' => push_char(out, c),
            '\r' => {}
            c => push_html_char(out, c),
        }
    }
}

fn push_html_char(out: &mut Vec<u8>, c: char) {
    match c {
        '&' => out.extend_from_slice(b"&amp;"),
        '<' => out.extend_from_slice(b"&lt;"),
        '>' => out.extend_from_slice(b"&gt;"),
        '"' => out.extend_from_slice(b"&quot;"),
        '\'' => out.extend_from_slice(b"&#39;"),
        c if is_deceptive(c) => push_char(out, char::REPLACEMENT_CHARACTER),
        c => push_char(out, c),
    }
}

/// Appends `text` as one path segment of a URL. Each byte that is not an unreserved character (RFC 3986 §2.3) becomes
/// `%XX`.
pub fn push_segment(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Appends `text` as a quoted JSON string.
///
/// Characters with a meaning in HTML, and characters that mislead readers or terminals, are written as `\uXXXX`. A JSON
/// parser still returns the exact text, and the bytes are harmless if a program shows them as HTML or prints them.
pub fn push_json(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '<' | '>' | '&' | '\'' => push_unicode_escape(out, c),
            c if is_deceptive(c) => push_unicode_escape(out, c),
            c => push_char(out, c),
        }
    }
    out.push(b'"');
}

/// Appends `template` with each `{{key}}` replaced by the text that `value` appends for that key.
///
/// The template is processed in one pass, so a `{{key}}` inside a value is not replaced. An unclosed `{{` is dropped.
pub fn push_template(out: &mut Vec<u8>, template: &str, mut value: impl FnMut(&str, &mut Vec<u8>)) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.extend_from_slice(before.as_bytes());
        let Some((key, tail)) = after.split_once("}}") else {
            rest = after;
            break;
        };
        value(key, out);
        rest = tail;
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Returns true for control characters, and for characters that are invisible, break the line, or change the reading
/// direction of the following text. U+200C and U+200D (joiners), the soft hyphen and tag characters are invisible too,
/// but they do not count, because they occur in words and emoji.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}'   // marks, zero width space
            | '\u{2028}'..='\u{202E}'                          // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{206F}'                          // word joiner, isolates, deprecated format characters
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}') // byte order mark, annotations
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends the UTF-16 units of a character as escapes. All characters that are currently escaped need one unit. The
/// loop also handles characters of two units.
fn push_unicode_escape(out: &mut Vec<u8>, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(b"\\u");
        for shift in [12, 8, 4, 0] {
            out.push(HEX[usize::from((*unit >> shift) & 15)].to_ascii_lowercase());
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: fn(&mut Vec<u8>, &str), rows: &[(&str, &str)]) {
        for (given, expected) in rows {
            let mut out = Vec::new();
            write(&mut out, given);
            assert_eq!(String::from_utf8(out).unwrap(), *expected, "given {given:?}");
        }
    }

    #[test]
    fn html_contains_no_markup_and_no_deceptive_characters() {
        check(
            push_html,
            &[
                ("", ""),
                ("plain name.txt", "plain name.txt"),
                ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
                ("\" onmouseover=\"x", "&quot; onmouseover=&quot;x"),
                ("a' b='c", "a&#39; b=&#39;c"),
                ("&amp;", "&amp;amp;"),
                ("photo\u{202E}gpj.exe", "photo\u{FFFD}gpj.exe"),
                ("\u{2066}a\u{2069}", "\u{FFFD}a\u{FFFD}"),
                (
                    "line\nbreak\ttab\u{0}nul\u{7F}del\u{85}next",
                    "line\u{FFFD}break\u{FFFD}tab\u{FFFD}nul\u{FFFD}del\u{FFFD}next",
                ),
                ("a\u{200B}b\u{FEFF}c\u{2028}d", "a\u{FFFD}b\u{FFFD}c\u{FFFD}d"),
                ("प्र\u{200D}ा 日本語 🪨 עברית", "प्र\u{200D}ा 日本語 🪨 עברית"),
            ],
        );
    }

    #[test]
    fn segments_contain_unreserved_characters_only() {
        check(
            push_segment,
            &[
                ("", ""),
                ("a-b_c.d~e9", "a-b_c.d~e9"),
                ("two words", "two%20words"),
                ("javascript:alert(1)", "javascript%3Aalert%281%29"),
                ("//evil.example", "%2F%2Fevil.example"),
                ("50%.txt", "50%25.txt"),
                ("?q=1#top", "%3Fq%3D1%23top"),
                ("\\evil", "%5Cevil"),
                ("a\"b'c<d>", "a%22b%27c%3Cd%3E"),
                ("é\n", "%C3%A9%0A"),
            ],
        );
    }

    #[test]
    fn json_is_exact_and_inert() {
        check(
            push_json,
            &[
                ("", "\"\""),
                ("a \"b\" \\c", r#""a \"b\" \\c""#),
                ("</script>", r#""\u003c/script\u003e""#),
                ("a\u{202E}b\u{0}\n\u{7F}", r#""a\u202eb\u0000\u000a\u007f""#),
                ("日本 🪨", "\"日本 🪨\""),
            ],
        );
        for text in ["\u{0}\u{1F}\"\\/<>&'", "\u{2028}\u{FEFF}🪨", "plain"] {
            let mut out = Vec::new();
            push_json(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn templates_are_filled_once() {
        let fill = |template: &str| {
            let mut out = Vec::new();
            push_template(&mut out, template, |key, out| match key {
                "a" => out.extend_from_slice(b"{{b}}"),
                "b" => out.extend_from_slice(b"B"),
                _ => {}
            });
            String::from_utf8(out).unwrap()
        };
        for (template, expected) in [
            ("", ""),
            ("x", "x"),
            ("{{a}}", "{{b}}"),
            ("1{{b}}2{{b}}3", "1B2B3"),
            ("{{none}}", ""),
            ("x{{open", "xopen"),
        ] {
            assert_eq!(fill(template), expected, "template {template:?}");
        }
    }
}

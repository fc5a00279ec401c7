//! Splits lists in field values (RFC 9110 §5.6.1).

pub(super) use crate::bytes::trim;

/// Returns the value without leading optional whitespace.
pub(super) fn skip_whitespace(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|&b| !is_whitespace(b)).unwrap_or(value.len());
    &value[start..]
}

/// Returns the trimmed parts of a value between separators. Separators inside quoted strings are ignored. Empty parts
/// are skipped, as RFC 9110 §5.6.1.2 requires of a recipient.
pub(super) fn parts(value: &[u8], separator: u8) -> ListParts<'_> {
    ListParts { rest: value, separator }
}

/// Iterator of [`parts`].
pub(super) struct ListParts<'a> {
    rest: &'a [u8],
    separator: u8,
}

impl<'a> Iterator for ListParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = part_length(self.rest, self.separator);
            let part = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
            if !part.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

/// Returns the length up to the separator or the end. An unclosed quoted string extends to the end.
fn part_length(rest: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in rest.iter().enumerate() {
        if escaped {
            escaped = false;
        } else if quoted {
            match byte {
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else if byte == separator {
            return at;
        } else if byte == b'"' {
            quoted = true;
        }
    }
    rest.len()
}

/// Returns true for a byte of `OWS = *( SP / HTAB )`.
fn is_whitespace(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_outside_of_quotes() {
        // Field value, and its parts between commas.
        let rows: &[(&str, &[&str])] = &[
            ("a, b,c", &["a", "b", "c"]),
            (" ,, a ,\t, b ,", &["a", "b"]),
            ("", &[]),
            (" ", &[]),
            (",", &[]),
            (r#"a;p="x,y", b"#, &[r#"a;p="x,y""#, "b"]),
            (r#"a;p="x\",y", b"#, &[r#"a;p="x\",y""#, "b"]),
            (r#"a;p="x, b"#, &[r#"a;p="x, b"#]),
            (r"a\,b", &[r"a\", "b"]),
        ];
        for &(value, expected) in rows {
            let found: Vec<&[u8]> = parts(value.as_bytes(), b',').collect();
            let expected: Vec<&[u8]> = expected.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(found, expected, "{value:?}");
        }
    }
}

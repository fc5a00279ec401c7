//! Names of archives: from the path of a folder, and in `Content-Disposition`.

use std::fmt::Write;

/// Name of the archive of the top folder, which has no name.
const TOP: &str = "files";

/// Returns the name of the folder at a decoded path with a slash at both ends.
pub fn of_folder(path: &str) -> String {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => TOP.to_owned(),
    }
}

/// Returns the value of `Content-Disposition` for a file name (RFC 6266). `filename` gets the printable ASCII
/// characters of the name, except `"`, `\` and `%`, which clients interpret in different ways (RFC 6266, appendix D). A
/// name with other characters is encoded in `filename*` (RFC 8187) as well; `filename` is then a replacement for old
/// clients.
pub fn disposition(name: &str) -> String {
    let is_plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        value.push_str("; filename*=UTF-8''");
        for &byte in name.as_bytes() {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => value.push(char::from(byte)),
                _ => {
                    let _ = write!(value, "%{byte:02X}");
                }
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names() {
        for (path, expected) in [("/", "files"), ("/a/", "a"), ("/a/b c/", "b c"), ("/a/é/", "é")] {
            assert_eq!(of_folder(path), expected, "{path}");
        }
    }

    #[test]
    fn names_are_quoted_or_encoded() {
        for (name, expected) in [
            ("a.zip", "attachment; filename=\"a.zip\""),
            ("a b;c.zip", "attachment; filename=\"a b;c.zip\""),
            (
                "a\"b\\c.zip",
                "attachment; filename=\"a_b_c.zip\"; filename*=UTF-8''a%22b%5Cc.zip",
            ),
            (
                "50%.zip",
                "attachment; filename=\"50_.zip\"; filename*=UTF-8''50%25.zip",
            ),
            (
                "é€.zip",
                "attachment; filename=\"__.zip\"; filename*=UTF-8''%C3%A9%E2%82%AC.zip",
            ),
            (
                "a\r\nX: y",
                "attachment; filename=\"a__X: y\"; filename*=UTF-8''a%0D%0AX%3A%20y",
            ),
        ] {
            assert_eq!(disposition(name), expected, "{name:?}");
        }
    }
}

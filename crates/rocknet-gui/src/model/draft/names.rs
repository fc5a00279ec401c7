//! Names of websites that folders suggest, and folders that were dropped into a field.

use std::path::Path;

/// Returns the paths in a text of files that were dropped: one on each line, most of them as `file:` URLs.
pub fn dropped_paths(text: &str) -> Vec<String> {
    // A line that begins with `#` is a comment of a list of URLs (RFC 2483).
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(path_of).collect()
}

/// Returns the first path in a text that was typed, pasted or dropped into a field.
pub fn dropped(text: &str) -> String {
    dropped_paths(text).into_iter().next().unwrap_or_default()
}

/// Returns the path of a `file:` URL, whose host is that of this computer; any other text as it is.
fn path_of(line: &str) -> String {
    let Some(rest) = line.trim().strip_prefix("file:").filter(|rest| rest.starts_with('/')) else {
        return line.to_owned();
    };
    let path = match rest.strip_prefix("//") {
        Some(with_host) => &with_host[with_host.find('/').unwrap_or(with_host.len())..],
        None => rest,
    };
    let bytes = path.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    let path = String::from_utf8_lossy(&decoded).into_owned();
    match path.trim_end_matches('/') {
        "" => path,
        trimmed => trimmed.to_owned(),
    }
}

/// Names of folders that do not name the website, so that the name of the parent folder is used.
const MEANINGLESS: [&str; 8] = ["public", "public_html", "htdocs", "www", "html", "web", "dist", "build"];

/// Returns the part of a path that names the website.
pub fn folder_label(folder: &str) -> String {
    let parts = Path::new(folder.trim()).components().rev();
    let mut names = parts.filter_map(|part| match part {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let last = names.next().unwrap_or_default();
    if MEANINGLESS.contains(&last.to_lowercase().as_str()) {
        names.next().unwrap_or(last)
    } else {
        last
    }
}

/// Returns a text as a label of a host name: lower case, with hyphens for everything that is not a letter or digit.
pub fn host_label(text: &str) -> String {
    /// Maximum length of a label (RFC 1035).
    const MAX_LABEL: usize = 63;
    let mut label = String::new();
    for letter in text.to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => label.push(letter),
            'ä' => label.push_str("ae"),
            'ö' => label.push_str("oe"),
            'ü' => label.push_str("ue"),
            'ß' => label.push_str("ss"),
            _ if !label.is_empty() && !label.ends_with('-') => label.push('-'),
            _ => {}
        }
    }
    label.truncate(MAX_LABEL);
    label.trim_end_matches('-').to_owned()
}

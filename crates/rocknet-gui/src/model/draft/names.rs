//! Names of websites that folders suggest, and folders that were dropped into a field.

use std::path::Path;

/// Returns the path in a text. A folder that was dropped into the field arrives as a `file:` URL on a separate line.
pub fn dropped(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let Some(path) = line.trim().strip_prefix("file://") else {
        return line.to_owned();
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

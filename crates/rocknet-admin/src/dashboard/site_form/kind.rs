//! Kinds of websites, and the fields of the form that depend on a choice.

/// Content of a website, which decides what fields it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Files,
    Php,
    Proxy,
    Redirects,
    /// Keys that the form does not have.
    Other,
}

/// Kinds with the word in the form, the label, and the fields that they show.
pub(super) const KINDS: [(ContentKind, &str, &str, &[&str]); 5] = [
    (ContentKind::Files, "files", "Files of a folder", &["root"]),
    (ContentKind::Php, "php", "PHP scripts of a folder", &["root", "php"]),
    (ContentKind::Proxy, "proxy", "Another server", &["proxy"]),
    (ContentKind::Redirects, "redirects", "Redirects only", &["redirects"]),
    (ContentKind::Other, "other", "What its text says", &[]),
];

/// Fields of which a kind shows some.
pub(super) const OF_KINDS: [&str; 3] = ["root", "php", "proxy"];

/// Fields that are used with certificate files only.
const OF_FILES: [&str; 2] = ["tls.cert", "tls.key"];

/// Returns the choice that a field depends on, and its words with which the field is shown; `None` if it is always
/// shown.
pub fn shown_with(field: &str) -> Option<(&'static str, Vec<&'static str>)> {
    if OF_FILES.contains(&field) {
        return Some(("tls", vec!["files"]));
    }
    let is_shown =
        |(kind, .., fields): &&(ContentKind, _, _, &[&str])| *kind == ContentKind::Other || fields.contains(&field);
    let words = KINDS.iter().filter(is_shown).map(|(_, word, ..)| *word);
    OF_KINDS.contains(&field).then(|| ("kind", words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_depend_on_choices() {
        assert_eq!(shown_with("root"), Some(("kind", vec!["files", "php", "other"])));
        assert_eq!(shown_with("proxy"), Some(("kind", vec!["proxy", "other"])));
        assert_eq!(shown_with("tls.key"), Some(("tls", vec!["files"])));
        assert_eq!(shown_with("redirects"), None);
    }
}

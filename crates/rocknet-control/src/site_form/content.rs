//! Kinds of websites, such as files or PHP, and the form fields that are shown only with certain choices.

use super::SiteField;

/// Source of the responses of a website. The form shows the fields of this source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// Files of a folder.
    Files,
    /// PHP scripts of a folder.
    Php,
    /// Another server, to which requests are forwarded.
    Proxy,
    /// Redirects only.
    Redirects,
    /// Source whose keys are not in the form, but only in the configuration file.
    Other,
}

impl ContentKind {
    /// Determines the kind of a website from the fields that are set in the file. The first match counts.
    pub fn of(fields: &[&SiteField]) -> ContentKind {
        let is_set = |name: &str| {
            let found = fields.iter().find(|field| field.name == name);
            // `other` is the value of a key if the form cannot show it, such as a table. `text` is empty then.
            found.is_some_and(|field| field.other.is_some() || !["", "false"].contains(&field.text.as_str()))
        };
        [
            ("proxy", ContentKind::Proxy),
            ("php", ContentKind::Php),
            ("root", ContentKind::Files),
            ("redirects", ContentKind::Redirects),
        ]
        .into_iter()
        .find_map(|(name, kind)| is_set(name).then_some(kind))
        .unwrap_or(ContentKind::Other)
    }
}

/// Kinds, each with its value in the form, its label, and the names of its required fields. The order matches
/// [`ContentKind`], so a kind is an index.
pub const KINDS: [(ContentKind, &str, &str, &[&str]); 5] = [
    (ContentKind::Files, "files", "Files of a folder", &["root"]),
    (ContentKind::Php, "php", "PHP scripts of a folder", &["root", "php"]),
    (ContentKind::Proxy, "proxy", "Another server", &["proxy"]),
    (ContentKind::Redirects, "redirects", "Redirects only", &["redirects"]),
    (ContentKind::Other, "other", "Other, set in the configuration file", &[]),
];

/// Fields that are shown only with the kinds that need them, and with [`ContentKind::Other`]. The field `redirects`
/// is shown with every kind.
pub const OF_KINDS: [&str; 3] = ["root", "php", "proxy"];

/// Fields that are used only if the field `tls` is `files`.
const OF_FILES: [&str; 2] = ["tls.cert", "tls.key"];

/// Returns the choice that controls a field, and the words of the choice that show the field; `None` if the field is
/// always visible.
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

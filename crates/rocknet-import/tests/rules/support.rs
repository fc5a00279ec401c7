//! Reads the results of translations.

use rocknet_import::{Import, Language, Note, import};

/// Returns the lines of each rule in their order, with `'` for `"`, separated by `; `.
pub(crate) fn rules(import: &Import) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = import.toml.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("[[site.") && line.ends_with(".rule]]") {
            let rule: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
            found.push(rule.join("; ").replace('"', "'"));
        }
    }
    found
}

/// Asserts that a text is in the result.
pub(crate) fn has(import: &Import, text: &str) {
    assert!(import.toml.contains(text), "{text}\n{}", import.toml);
}

/// Returns true if the message of a note has a text.
pub(crate) fn has_note(import: &Import, text: &str) -> bool {
    import.notes.iter().any(|note| note.message.contains(text))
}

/// Returns true if a note about a weakened restriction has a text in its directive or message.
pub(crate) fn is_weakened(import: &Import, text: &str) -> bool {
    let is_about = |note: &&Note| note.directive.contains(text) || note.message.contains(text);
    import.notes.iter().filter(is_about).any(Note::weakens_access)
}

/// Returns true if a note says that access may be more open.
pub(crate) fn is_any_weakened(import: &Import) -> bool {
    import.notes.iter().any(Note::weakens_access)
}

/// Translates a `server` block of nginx with these directives.
pub(crate) fn translated_nginx(server: &str) -> Import {
    let text = format!("server {{ listen 80; server_name a.test; root /srv; {server} }}\n");
    import(Language::Nginx, "site.conf", &text).unwrap()
}

/// Translates a virtual host of Apache with these directives.
pub(crate) fn translated_apache(host: &str) -> Import {
    let text = format!("<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n{host}\n</VirtualHost>\n");
    import(Language::Apache, "site.conf", &text).unwrap()
}

/// Returns the lines of access control of a table, such as `route."/x/*"]`.
pub(crate) fn access_of<'i>(import: &'i Import, table: &str) -> Vec<&'i str> {
    let (_, lines) = import.toml.split_once(&format!("{table}\n")).expect(table);
    let is_access = |line: &&str| ["allow", "deny", "auth", "satisfy"].contains(&line.split(' ').next().unwrap_or(""));
    lines
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(is_access)
        .collect()
}

//! Form of a site: its common keys as fields with plain labels, in groups. Every other key is edited as text.

use crate::keys::{self, Key, Kind, Section, Word};

/// Field of the form: a key of a site.
#[derive(Debug)]
pub struct Field {
    /// Path of the key below the site, such as `["limits", "body_size"]`. The path of a field of the server begins at
    /// the top of the configuration: it begins with `server`, or is `["ban"]`.
    pub path: &'static [&'static str],
    /// Label in the words of an operator.
    pub label: &'static str,
    /// Heading of the group that contains the field.
    pub group: &'static str,
    /// Key that contains the value if the field is written as a table, its long form. For `proxy` it is `to`, because
    /// `proxy = "http://…"` has the long form `proxy = { to = "http://…" }`.
    pub(crate) long: Option<&'static str>,
    /// Keys of the long form that replace the value by another setting, such as `forward` for `auth`. With one of
    /// them, the field cannot show the value.
    pub(crate) replaced_by: &'static [&'static str],
}

/// Input that shows the value of a field as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldInput {
    /// `true` or `false`.
    Switch,
    /// One of the words of [`Field::words`].
    Choice,
    /// One line of text.
    Text,
    /// One element on each line.
    List,
    /// One `name = value` on each line.
    Map,
}

/// Keys of `auth` that authenticate clients in another way than by passwords.
pub(crate) const OTHER_WAYS: &[&str] = &["forward", "signed", "certificate", "oidc"];

/// Word for certificate files of the operator, in the field `tls`.
pub const OWN_FILES: Word = Word {
    text: "files",
    doc: "with your own certificate files",
    later: None,
};

// Headings of the groups.
const CONTENT: &str = "Content";
const SITE: &str = "Names and ports";
const HTTPS: &str = "HTTPS";
const FILES: &str = "Files and pages";
const ACCESS: &str = "Access";
const MORE: &str = "Responses and limits";

/// All fields, in the order of the form.
pub const FIELDS: &[Field] = &[
    field(&["root"], "Folder", CONTENT),
    field(&["php"], "PHP", CONTENT).long("version"),
    field(&["proxy"], "Server that requests are forwarded to", CONTENT).long("to"),
    field(&["redirects"], "Redirects", CONTENT),
    field(&["enabled"], "Serve this website", SITE),
    field(&["aliases"], "More names", SITE),
    field(&["listen"], "Ports and addresses", SITE),
    field(&["tls"], "Encryption", HTTPS),
    field(&["tls", "cert"], "Certificate file", HTTPS),
    field(&["tls", "key"], "Key file", HTTPS),
    field(&["index"], "Index files", FILES),
    field(&["fallback"], "Page for every other path", FILES),
    field(&["browse"], "List the files of folders", FILES),
    field(&["errors"], "Error pages", FILES),
    field(&["allow"], "Only these addresses", ACCESS),
    field(&["deny"], "Not these addresses", ACCESS),
    field(&["auth"], "Users with passwords", ACCESS)
        .long("users")
        .replaced_by(OTHER_WAYS),
    field(&["auth", "file"], "File with users and passwords", ACCESS),
    field(&["auth", "forward"], "Server that decides about each request", ACCESS),
    field(&["limit"], "Most requests of a client", ACCESS)
        .long("rate")
        .replaced_by(&["connections", "bandwidth"]),
    field(&["cors"], "Other websites that may read responses", ACCESS).long("origins"),
    field(&["harden"], "Header fields against attacks", ACCESS),
    field(&["cache"], "Keep responses of the application", MORE),
    field(&["cache", "ttl"], "Time to keep responses that state none", MORE),
    field(&["compress"], "Compress responses", MORE),
    field(&["headers"], "Header fields", MORE),
    field(&["limits", "body_size"], "Largest upload", MORE),
    field(&["log"], "Access log", MORE).long("access"),
];

/// Heading of the fields of the server.
const SERVER: &str = "Server";

/// Fields of the server, in the order of its form. Their paths begin at the top of the configuration.
pub const SERVER_FIELDS: &[Field] = &[
    // The mode selects the ports of a website without `listen`.
    field(&["server", "mode"], "Ports of websites without their own", SERVER),
    field(&["server", "workers"], "Worker threads for each port", SERVER),
    field(&["server", "backend"], "I/O back end", SERVER),
    field(&["ban"], "Ban clients that guess passwords or scan", SERVER),
];

const fn field(path: &'static [&'static str], label: &'static str, group: &'static str) -> Field {
    Field {
        path,
        label,
        group,
        long: None,
        replaced_by: &[],
    }
}

/// Returns the field with this name, such as `limits.body_size`.
pub fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name() == name)
}

/// Returns the field of the server with this name, such as `server.workers`.
pub fn find_of_server(name: &str) -> Option<&'static Field> {
    SERVER_FIELDS.iter().find(|field| field.name() == name)
}

impl Field {
    const fn long(self, key: &'static str) -> Field {
        Field {
            long: Some(key),
            ..self
        }
    }

    const fn replaced_by(self, keys: &'static [&'static str]) -> Field {
        Field {
            replaced_by: keys,
            ..self
        }
    }

    /// Returns the path with dots.
    pub fn name(&self) -> String {
        self.path.join(".")
    }

    /// Returns true for a field of the server, whose path begins at the top of the configuration.
    pub fn is_of_server(&self) -> bool {
        matches!(self.path.first(), Some(&"server" | &"ban"))
    }

    /// Returns the key in the table of keys; `None` if the table has no such key, which a test excludes.
    pub fn key(&self) -> Option<&'static Key> {
        match *self.path {
            ["ban"] => keys::find(Section::Top, "ban"),
            [name] => keys::find(Section::Site, name),
            ["auth", name] => keys::find(Section::Auth, name),
            ["cache", name] => keys::find(Section::ResponseCache, name),
            ["limits", name] => keys::find(Section::SiteLimits, name),
            ["server", name] => keys::find(Section::Server, name),
            ["tls", name] => keys::find(Section::SiteTls, name),
            _ => None,
        }
    }

    /// Returns the input for the kind of the key.
    pub fn input(&self) -> FieldInput {
        self.key().map_or(FieldInput::Text, |key| input(&key.kind))
    }

    /// Returns the words of a choice, or words that may be typed in place of another text.
    pub fn words(&self) -> Vec<&'static Word> {
        let mut words = Vec::new();
        if let Some(key) = self.key() {
            collect_words(&key.kind, &mut words);
        }
        if self.path == ["tls"] {
            words.push(&OWN_FILES);
        }
        words
    }

    /// Returns true if a table with these key names is the long form of the field's key.
    pub(crate) fn is_long_form<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        let section = self.key().and_then(|key| section(&key.kind));
        match (self.input(), section) {
            (_, None) => false,
            // A table without a key of the section is a map, such as `auth = { bob = "…" }`. The operator has chosen
            // its names.
            (FieldInput::Map, Some(section)) => names.any(|name| keys::find(section, name).is_some()),
            (_, Some(_)) => true,
        }
    }
}

/// Returns the input that can show every value of a kind.
fn input(kind: &Kind) -> FieldInput {
    match kind {
        Kind::Boolean => FieldInput::Switch,
        Kind::Choice(_) => FieldInput::Choice,
        Kind::List(_) | Kind::Several(_) => FieldInput::List,
        Kind::Map { .. } | Kind::Tables { .. } => FieldInput::Map,
        Kind::Integer { .. }
        | Kind::Duration { .. }
        | Kind::Size { .. }
        | Kind::Rate { .. }
        | Kind::Text(_)
        | Kind::Table(_) => FieldInput::Text,
        Kind::Either(kinds) => {
            let inputs = || {
                let simple = kinds.iter().filter(|kind| !matches!(kind, Kind::Table(_)));
                simple.map(input)
            };
            // The list begins with the most general input. The first input that an alternative needs can therefore
            // show the values of every alternative.
            [
                FieldInput::Map,
                FieldInput::List,
                FieldInput::Text,
                FieldInput::Choice,
                FieldInput::Switch,
            ]
            .into_iter()
            .find(|wanted| inputs().any(|input| input == *wanted))
            .unwrap_or(FieldInput::Text)
        }
    }
}

/// Adds the available words of a kind and of its alternatives.
fn collect_words(kind: &'static Kind, into: &mut Vec<&'static Word>) {
    match kind {
        Kind::Choice(words) => into.extend(words.iter().filter(|word| word.later.is_none())),
        Kind::Either(kinds) => kinds.iter().for_each(|kind| collect_words(kind, into)),
        _ => {}
    }
}

/// Returns the section of the table that a kind accepts; `None` if the kind accepts no table with fixed keys.
fn section(kind: &Kind) -> Option<Section> {
    match kind {
        Kind::Table(section) => Some(*section),
        Kind::Either(kinds) => kinds.iter().find_map(section),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_key_and_a_name_of_its_own() {
        for field in SERVER_FIELDS {
            assert!(field.key().is_some_and(|key| !key.doc.is_empty()), "{}", field.name());
            assert_eq!(find_of_server(&field.name()).unwrap().path, field.path);
        }
        for (at, field) in FIELDS.iter().enumerate() {
            let key = field.key().unwrap_or_else(|| panic!("{}", field.name()));
            assert!(!key.doc.is_empty() && !field.label.is_empty());
            assert!(FIELDS[..at].iter().all(|other| other.path != field.path));
            assert_eq!(find(&field.name()).unwrap().path, field.path);
            if let Some(long) = field.long {
                let section = section(&key.kind).unwrap();
                for key in field.replaced_by.iter().chain([&long]) {
                    assert!(keys::find(section, key).is_some(), "{key}");
                }
            }
        }
        // Fields of a group are together.
        let mut groups: Vec<_> = FIELDS.iter().map(|field| field.group).collect();
        groups.dedup();
        let count = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), count);
    }

    #[test]
    fn inputs_follow_from_the_kinds_of_keys() {
        for (name, expected) in [
            ("enabled", FieldInput::Switch),
            ("aliases", FieldInput::List),
            ("listen", FieldInput::List),
            ("root", FieldInput::Text),
            ("php", FieldInput::Text),
            ("proxy", FieldInput::List),
            ("tls", FieldInput::Choice),
            ("fallback", FieldInput::Text),
            ("auth", FieldInput::Map),
            ("auth.file", FieldInput::Text),
            ("auth.forward", FieldInput::Text),
            ("limit", FieldInput::List),
            ("cors", FieldInput::List),
            ("harden", FieldInput::Switch),
            ("cache", FieldInput::Switch),
            ("cache.ttl", FieldInput::Text),
            ("limits.body_size", FieldInput::Text),
            ("log", FieldInput::Text),
        ] {
            assert_eq!(find(name).unwrap().input(), expected, "{name}");
        }
        let words: Vec<_> = find("tls").unwrap().words().iter().map(|word| word.text).collect();
        assert_eq!(words, ["auto", "local", "off", "files"]);
        assert!(find("rot").is_none());
    }
}

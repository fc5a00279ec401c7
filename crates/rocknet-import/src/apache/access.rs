//! Translates access control of Apache: `Require`, `Order` with `Allow` and `Deny`, and Basic authentication.

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::settings::Settings;
use crate::value::Value;

use super::order::OrderDraft;
use super::requirement::Requirement;

/// Access directives of one section.
#[derive(Default)]
pub(super) struct AccessDraft {
    required: Vec<Requirement>,
    order: OrderDraft,
    /// The first directive, apart from those in `required` and `order`, that RockNet cannot express. Because of it, the
    /// section denies every client.
    unknown: Option<Directive>,
    realm: Option<String>,
    /// Password file, and the line of its directive; `None` if no file with a known path is named.
    file: Option<(String, usize)>,
    /// Line of the first directive; 0 before it has been read.
    line: usize,
}

impl AccessDraft {
    /// Reads a directive. `file`: its first argument with its variables expanded; `None` if a variable is not defined.
    /// Returns false if the directive does not concern access.
    pub fn read(&mut self, directive: &Directive, file: Option<String>) -> bool {
        let words = directive.lowercase_words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("require" | "requireall" | "requireany" | "requirenone", _) => {
                self.required.push(Requirement::of(directive));
            }
            ("order" | "allow" | "deny", words) => self.order.read(directive, words),
            ("satisfy", ["all"]) => {}
            ("authtype", ["basic"]) => {}
            ("authbasicprovider", ["file"]) => {}
            ("authname", [_]) => self.realm = Some(directive.argument(0).to_owned()),
            ("authuserfile", [_]) => self.file = file.map(|file| (file, directive.line)),
            (
                "satisfy" | "authtype" | "authbasicprovider" | "authgroupfile" | "limit" | "limitexcept"
                | "authldapurl" | "authmerging" | "sslrequire",
                _,
            ) => {
                self.unknown.get_or_insert_with(|| directive.clone());
            }
            ("sslverifyclient", ["require"]) => {
                self.unknown.get_or_insert_with(|| directive.clone());
            }
            _ => return false,
        }
        self.line = if self.line == 0 { directive.line } else { self.line };
        true
    }

    /// Returns true if the section decides which clients have access.
    pub fn decides(&self) -> bool {
        !self.required.is_empty() || self.order.is_used() || self.unknown.is_some()
    }

    /// Writes the restrictions to the settings of the section.
    pub fn finish(self, settings: &mut Settings, notes: &mut Vec<Note>) {
        let line = self.line;
        let mut all = vec![self.order.requirement(notes)];
        // Notes name this directive if they concern the whole section.
        let section = Directive::new("Require", Vec::new(), line);
        if !self.required.is_empty() {
            all.push(Requirement::any(self.required, &section));
        }
        let clients = Requirement::all(all, &section);
        if let Some(directive) = self.unknown.as_ref().or(clients.unknown.as_ref()) {
            settings.close(line);
            let message = "this restriction has no counterpart, so `deny = \"all\"` denies every client here; \
                 write `allow` and `auth`: docs/access.md";
            notes.skip(directive, message);
        }
        match (&clients.user, self.file) {
            (Some(directive), Some((file, line))) => {
                let mut auth = Vec::new();
                auth.extend(self.realm.map(|realm| ("realm".to_owned(), Value::Text(realm))));
                auth.push(("file".to_owned(), Value::Text(file)));
                settings.set("auth", Value::Table(auth), line);
                // In Apache, an allowed address or a user suffices for clients that also meet a further condition, such
                // as `Require not ip 10`. `satisfy = "any"` cannot express this, because it lets users pass `deny`.
                if clients.is_either {
                    notes.differs(directive, "RockNet requires both an allowed address and a user");
                }
            }
            (Some(directive), None) => {
                settings.close(line);
                let message = "no `AuthUserFile` with a known path is named here, so `deny = \"all\"` denies every \
                     client here: write `auth`";
                notes.skip(directive, message);
            }
            _ => {}
        }
        if clients.is_denied {
            settings.close(line);
        }
        if settings.is_closed() {
            return;
        }
        if let Some(allow) = clients.allow {
            settings.set("allow", Value::texts(allow), line);
        }
        // An allowed address or a user suffices, and there is no further condition.
        if clients.is_any {
            settings.set("satisfy", Value::text("any"), line);
        }
        if !clients.deny.is_empty() {
            settings.set("deny", Value::texts(clients.deny), line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_become_lists_of_clients_or_close_the_section() {
        let rows = [
            (
                &["Order deny,allow", "Deny from all", "Allow from 10"][..],
                "allow",
                "10.0.0.0/8",
            ),
            (
                &["Order allow,deny", "Allow from all", "Deny from 10"],
                "deny",
                "10.0.0.0/8",
            ),
            (&["Order allow,deny", "Deny from all", "Allow from 10"], "deny", "all"),
            (&["Order allow,deny", "Allow from 10"], "allow", "10.0.0.0/8"),
            (&["Order allow,deny"], "deny", "all"),
            (&["Deny from all"], "deny", "all"),
            (&["Require all denied"], "deny", "all"),
            (&["Require ip 10.0.0.1"], "allow", "10.0.0.1"),
            (&["Require host a.test"], "deny", "all"),
            (&["Require valid-user"], "deny", "all"),
            (
                &["Require all granted", "Order deny,allow", "Deny from 10"],
                "deny",
                "10.0.0.0/8",
            ),
            (&["Deny from 10", "Allow from 10.1"], "deny", "10.0.0.0/8"),
            (&["Allow from env=x"], "deny", "all"),
            (&["SSLVerifyClient require"], "deny", "all"),
        ];
        for (lines, key, expected) in rows {
            let mut draft = AccessDraft::default();
            for line in lines {
                let mut words = line.split(' ').map(str::to_owned);
                let name = words.next().unwrap();
                assert!(draft.read(&Directive::new(name, words.collect(), 1), None), "{line}");
            }
            let (mut settings, mut notes) = (Settings::default(), Vec::new());
            draft.finish(&mut settings, &mut notes);
            assert_eq!(settings.get(key), Some(&Value::text(expected)), "{lines:?}");
        }
    }
}

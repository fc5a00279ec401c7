//! Translates access control of Apache: `Require`, `Order` with `Allow` and `Deny`, and Basic authentication.

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::settings::Settings;
use crate::value::Value;

/// Access directives of one section.
#[derive(Default)]
pub(super) struct AccessDraft {
    allow: Vec<String>,
    deny: Vec<String>,
    is_open: bool,
    is_closed: bool,
    /// The first directive that RockNet cannot express. It closes the section.
    unknown: Option<Directive>,
    needs_user: Option<Directive>,
    /// `Order` begins with `deny`, so that the default is to allow.
    order_denies_first: bool,
    has_order: bool,
    realm: Option<String>,
    file: Option<(String, usize)>,
    line: usize,
}

impl AccessDraft {
    /// Reads a directive. Returns false if it does not concern access.
    pub fn read(&mut self, directive: &Directive, file: Option<String>) -> bool {
        let words: Vec<String> = directive
            .arguments
            .iter()
            .map(|word| word.to_ascii_lowercase())
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("require", words) => self.require(directive, words),
            ("requireall" | "requireany", _) => {
                for inner in directive.children() {
                    self.read(inner, None);
                }
            }
            ("requirenone", _) => {
                for inner in directive.children() {
                    let mut words = vec!["not".to_owned()];
                    words.extend(inner.arguments.iter().cloned());
                    self.read(&Directive::new("Require", words, inner.line), None);
                }
            }
            ("order", [order, ..]) => {
                self.has_order = true;
                self.order_denies_first = order.starts_with("deny");
            }
            ("allow", ["from", from @ ..]) => match from {
                ["all"] => self.is_open = true,
                from => self.addresses(directive, from, true),
            },
            ("deny", ["from", from @ ..]) => match from {
                ["all"] => self.is_closed = true,
                from => self.addresses(directive, from, false),
            },
            ("satisfy", ["all"]) => {}
            ("authtype", ["basic"]) => {}
            ("authbasicprovider", ["file"]) => {}
            ("authname", [_]) => self.realm = Some(directive.argument(0).to_owned()),
            ("authuserfile", [_]) => self.file = file.map(|file| (file, directive.line)),
            (
                "satisfy" | "authtype" | "authbasicprovider" | "authgroupfile" | "limit" | "limitexcept"
                | "authldapurl" | "authmerging",
                _,
            ) => self.unknown(directive),
            _ => return false,
        }
        self.line = if self.line == 0 { directive.line } else { self.line };
        true
    }

    fn require(&mut self, directive: &Directive, words: &[&str]) {
        match words {
            ["all", "granted"] => self.is_open = true,
            ["all", "denied"] => self.is_closed = true,
            ["ip", from @ ..] => self.addresses(directive, from, true),
            ["not", "ip", from @ ..] => self.addresses(directive, from, false),
            ["local"] => self.allow.extend(["127.0.0.0/8".to_owned(), "::1".to_owned()]),
            ["valid-user"] => self.needs_user = Some(directive.clone()),
            _ => self.unknown(directive),
        }
    }

    fn unknown(&mut self, directive: &Directive) {
        self.unknown.get_or_insert_with(|| directive.clone());
    }

    fn addresses(&mut self, directive: &Directive, from: &[&str], allows: bool) {
        for word in from {
            match network(word) {
                Some(network) if allows => self.allow.push(network),
                Some(network) => self.deny.push(network),
                None => self.unknown(directive),
            }
        }
    }

    /// Writes the restrictions to the settings of the section.
    pub fn finish(self, settings: &mut Settings, notes: &mut Vec<Note>) {
        let line = self.line;
        if let Some(directive) = &self.unknown {
            settings.close(line);
            let message = "this restriction has no counterpart, so `deny = \"all\"` closes the place; \
                 write `allow` and `auth`: docs/access.md";
            notes.skip(directive, message);
        }
        match (&self.needs_user, self.file) {
            (Some(directive), Some((file, line))) => {
                let mut auth = Vec::new();
                auth.extend(self.realm.map(|realm| ("realm".to_owned(), Value::Text(realm))));
                auth.push(("file".to_owned(), Value::Text(file)));
                settings.set("auth", Value::Table(auth), line);
                if !self.allow.is_empty() {
                    notes.differs(directive, "RockNet requires both an allowed address and a user");
                }
            }
            (Some(directive), None) => {
                settings.close(line);
                let message = "no `AuthUserFile` is named here, so `deny = \"all\"` closes the place: write `auth`";
                notes.skip(directive, message);
            }
            _ => {}
        }
        // By default, `Order deny,allow` allows, and `Order allow,deny` denies. `Deny from all` has the exceptions of
        // `Allow` only if `Deny` is evaluated first.
        let has_exceptions = !self.has_order || self.order_denies_first;
        let denies_all = match self.is_open {
            true => self.is_closed && !self.order_denies_first,
            false => self.is_closed && (self.allow.is_empty() || !has_exceptions),
        };
        if denies_all {
            settings.close(line);
        } else {
            let restricts = self.is_closed || !self.order_denies_first;
            if !self.allow.is_empty() && restricts && !self.is_open {
                settings.set("allow", Value::texts(self.allow), line);
            } else if self.has_order && !self.order_denies_first && !self.is_open && self.allow.is_empty() {
                settings.close(line);
            }
            if !self.deny.is_empty() {
                settings.set("deny", Value::texts(self.deny), line);
            }
        }
    }
}

/// Returns an address or network in RockNet's form. `10.1` stands for `10.1.0.0/16`.
fn network(word: &str) -> Option<String> {
    let (address, length) = word
        .split_once('/')
        .map_or((word, None), |(address, length)| (address, Some(length)));
    if address.parse::<std::net::IpAddr>().is_ok() {
        return match length {
            Some(length) if length.contains('.') => {
                let mask = u32::from(length.parse::<std::net::Ipv4Addr>().ok()?);
                (mask.leading_ones() + mask.trailing_zeros() == 32)
                    .then(|| format!("{address}/{}", mask.leading_ones()))
            }
            _ => Some(word.to_owned()),
        };
    }
    let parts: Vec<&str> = address.trim_end_matches('.').split('.').collect();
    let is_valid = parts.len() < 4 && length.is_none() && parts.iter().all(|part| part.parse::<u8>().is_ok());
    is_valid.then(|| {
        let zeros = ".0".repeat(4 - parts.len());
        format!("{}{zeros}/{}", parts.join("."), 8 * parts.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_addresses_become_networks() {
        for (word, expected) in [
            ("10", Some("10.0.0.0/8")),
            ("10.1.", Some("10.1.0.0/16")),
            ("10.0.0.0/255.0.0.0", Some("10.0.0.0/8")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("::1", Some("::1")),
            ("example.com", None),
        ] {
            assert_eq!(network(word).as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn orders_decide_which_list_prevails() {
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

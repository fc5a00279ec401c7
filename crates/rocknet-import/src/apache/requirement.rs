//! Reads `Require`, and the sections `<RequireAll>`, `<RequireAny>` and `<RequireNone>`, as nested conditions.

use crate::directive::Directive;

/// Clients that a condition permits. A client must meet all fields, except as `is_either` and `is_any` say.
#[derive(Debug, Clone, Default)]
pub(super) struct Requirement {
    /// Addresses that are permitted; `None` for every address.
    pub allow: Option<Vec<String>>,
    /// Addresses that are denied.
    pub deny: Vec<String>,
    /// The directive that requires a user, if any.
    pub user: Option<Directive>,
    /// True if an allowed address or the user suffices for Apache, and `satisfy = "any"` expresses this.
    pub is_any: bool,
    /// True if an allowed address or the user suffices for Apache beside another condition. The translation requires
    /// both, and a note reports the difference.
    pub is_either: bool,
    /// True if every client is denied.
    pub is_denied: bool,
    /// The first directive that RockNet cannot express, if any. Because of it, the section denies every client.
    pub unknown: Option<Directive>,
}

impl Requirement {
    /// Returns the condition of a directive or section.
    pub fn of(directive: &Directive) -> Requirement {
        let inner = || directive.children().iter().map(Requirement::of).collect();
        match directive.name.to_ascii_lowercase().as_str() {
            "require" => Requirement::single(directive),
            "requireall" => Requirement::all(inner(), directive),
            "requireany" => Requirement::any(inner(), directive),
            "requirenone" => Requirement::none(inner(), directive),
            _ => Requirement::unknown(directive),
        }
    }

    /// Returns the clients that all conditions of a section permit.
    pub fn all(mut conditions: Vec<Requirement>, section: &Directive) -> Requirement {
        conditions.retain(|one| !one.is_open());
        if conditions.len() == 1 {
            return conditions.remove(0);
        }
        let mut all = Requirement::default();
        for one in conditions {
            all.is_denied |= one.is_denied;
            all.deny.extend(one.deny);
            all.user = all.user.or(one.user);
            all.is_either |= one.is_either || one.is_any;
            all.unknown = all.unknown.or(one.unknown);
            // The intersection of two lists of networks is not computed, so the section counts as unknown.
            if all.allow.is_some() && one.allow.is_some() && all.allow != one.allow {
                all.unknown.get_or_insert_with(|| section.clone());
            }
            all.allow = all.allow.or(one.allow);
        }
        all
    }

    /// Returns the clients that one of the conditions of a section permits.
    pub fn any(conditions: Vec<Requirement>, section: &Directive) -> Requirement {
        // Apache ignores a negated condition here, such as `Require not ip 10`. The translation applies it as a
        // restriction, so that it admits no further clients.
        let (negated, mut rest): (Vec<_>, Vec<_>) = conditions.into_iter().partition(Requirement::is_negated);
        if !negated.is_empty() {
            let mut all = negated;
            if !rest.is_empty() {
                all.push(Requirement::any(rest, section));
            }
            return Requirement::all(all, section);
        }
        if rest.iter().any(Requirement::is_open) {
            return Requirement::default();
        }
        rest.retain(|one| !one.is_denied);
        match rest.len() {
            0 => Requirement {
                is_denied: true,
                ..Requirement::default()
            },
            1 => rest.remove(0),
            _ => Requirement::union(rest, section),
        }
    }

    /// Returns the clients that at least one of several conditions permits. Each condition must restrict access. Sets
    /// `is_any` if one names a user and another addresses.
    fn union(conditions: Vec<Requirement>, section: &Directive) -> Requirement {
        let mut union = Requirement::default();
        for one in conditions {
            // A list with exceptions, and a user from certain addresses, cannot be merged into one list.
            let is_mixed = !one.deny.is_empty() || one.user.is_some() && one.allow.is_some();
            if is_mixed {
                union.unknown.get_or_insert_with(|| section.clone());
            }
            union.unknown = union.unknown.or(one.unknown);
            union.user = union.user.or(one.user);
            if let Some(more) = one.allow {
                union.allow.get_or_insert_default().extend(more);
            }
        }
        union.is_any = union.user.is_some() && union.allow.is_some();
        union
    }

    /// Returns the clients that none of the conditions permits.
    fn none(conditions: Vec<Requirement>, section: &Directive) -> Requirement {
        let mut none = Requirement::default();
        for one in conditions {
            let is_list = one.deny.is_empty() && one.user.is_none() && one.unknown.is_none();
            match one.allow {
                _ if one.is_denied => {}
                Some(addresses) if is_list => none.deny.extend(addresses),
                _ => none.unknown = Some(section.clone()),
            }
        }
        none
    }

    fn single(directive: &Directive) -> Requirement {
        let words = directive.lowercase_words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut one = Requirement::default();
        match words[..] {
            ["all", "granted"] => {}
            ["all", "denied"] => one.is_denied = true,
            ["local"] => one.allow = Some(vec!["127.0.0.0/8".to_owned(), "::1".to_owned()]),
            ["valid-user"] => one.user = Some(directive.clone()),
            ["ip", ref from @ ..] if !from.is_empty() => match networks(from) {
                Some(networks) => one.allow = Some(networks),
                None => return Requirement::unknown(directive),
            },
            ["not", "ip", ref from @ ..] if !from.is_empty() => match networks(from) {
                Some(networks) => one.deny = networks,
                None => return Requirement::unknown(directive),
            },
            _ => return Requirement::unknown(directive),
        }
        one
    }

    fn unknown(directive: &Directive) -> Requirement {
        Requirement {
            unknown: Some(directive.clone()),
            ..Requirement::default()
        }
    }

    /// Returns true if every client is permitted.
    fn is_open(&self) -> bool {
        let is_listed = self.allow.is_some() || !self.deny.is_empty();
        !is_listed && self.user.is_none() && !self.is_denied && self.unknown.is_none()
    }

    /// Returns true for `Require not ip`.
    fn is_negated(&self) -> bool {
        !self.deny.is_empty() && self.allow.is_none() && self.user.is_none() && self.unknown.is_none()
    }
}

fn networks(words: &[&str]) -> Option<Vec<String>> {
    words.iter().map(|word| network(word)).collect()
}

/// Returns an address or network in RockNet's form; `None` for other words, such as host names. `10.1` stands for
/// `10.1.0.0/16`.
pub(super) fn network(word: &str) -> Option<String> {
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
    fn sections_are_nested_conditions() {
        let rows = [
            (
                "<RequireAll>\nRequire all granted\nRequire ip 10\n</RequireAll>",
                "allow 10.0.0.0/8",
            ),
            (
                "<RequireAll>\nRequire all granted\nRequire not ip 10\n</RequireAll>",
                "deny 10.0.0.0/8",
            ),
            (
                "<RequireAny>\nRequire all granted\nRequire ip 10\n</RequireAny>",
                "open",
            ),
            ("Require ip 10\nRequire all denied", "allow 10.0.0.0/8"),
            ("Require ip 10\nRequire ip 11", "allow 10.0.0.0/8 11.0.0.0/8"),
            ("<RequireAll>\nRequire ip 10\nRequire ip 11\n</RequireAll>", "unknown"),
            (
                "<RequireAll>\nRequire ip 10\nRequire valid-user\n</RequireAll>",
                "allow 10.0.0.0/8 user",
            ),
            (
                "<RequireAll>\nRequire all granted\n<RequireNone>\nRequire ip 10\n</RequireNone>\n</RequireAll>",
                "deny 10.0.0.0/8",
            ),
            (
                "<RequireAny>\nRequire ip 11\n<RequireAll>\nRequire ip 10\nRequire valid-user\n</RequireAll>\n</RequireAny>",
                "unknown",
            ),
            ("<RequireNone>\nRequire valid-user\n</RequireNone>", "unknown"),
            (
                "<RequireAny>\nRequire host a.test\nRequire all granted\n</RequireAny>",
                "open",
            ),
            (
                "<RequireAny>\nRequire host a.test\nRequire ip 10\n</RequireAny>",
                "unknown",
            ),
            ("<RequireAny>\n</RequireAny>", "denied"),
        ];
        for (text, expected) in rows {
            let tree = super::super::read(text).unwrap();
            let found = Requirement::any(tree.iter().map(Requirement::of).collect(), &tree[0]);
            let mut words = Vec::new();
            if found.unknown.is_some() {
                words.push("unknown".to_owned());
            } else if found.is_denied {
                words.push("denied".to_owned());
            } else {
                words.extend(found.allow.iter().map(|list| format!("allow {}", list.join(" "))));
                words.extend((!found.deny.is_empty()).then(|| format!("deny {}", found.deny.join(" "))));
                words.extend(found.user.iter().map(|_| "user".to_owned()));
            }
            let found = if words.is_empty() {
                "open".to_owned()
            } else {
                words.join(" ")
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}

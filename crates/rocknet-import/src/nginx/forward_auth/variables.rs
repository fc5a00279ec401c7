//! Variables of `set`, `set_escape_uri` and `auth_request_set`, and texts that contain them.
//!
//! `auth_request_set $user $upstream_http_x_user` sets `$user` to the header field `X-User` of the response of the
//! authorization service: the server that nginx queries before it serves a request, because of `auth_request`.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use crate::directive::Directive;

/// Header fields of the authorization service's response that are meant for clients. All others are fields of the
/// identity: RockNet adds them to the requests that applications get.
pub(super) const NO_IDENTITY: [&str; 3] = ["set_cookie", "location", "www_authenticate"];

/// Variables that the directives of a `server` block set.
pub(super) struct Variables {
    /// Values of `set` and `set_escape_uri`, by variable with its `$`.
    pub texts: HashMap<String, String>,
    /// Header fields of the authorization service's response, by variable with its `$`. The example at the top gives
    /// `x_user` for `$user`.
    pub fields: HashMap<String, String>,
    /// Variables that `auth_request_set` sets to other values, such as `$upstream_cookie_name`, or to several values.
    pub others: BTreeSet<String>,
}

impl Variables {
    /// Collects the variables of a server. If several directives give a variable different values, `texts` and `fields`
    /// do not have it; it is in `others` if the directive is `auth_request_set`.
    pub fn collect(server: &Directive) -> Variables {
        // Values by directive and variable: the flag is true for `auth_request_set`. `None` if several directives give
        // the variable different values.
        let mut all: HashMap<(bool, String), Option<String>> = HashMap::new();
        let mut directives = Vec::new();
        flatten(server, &mut directives);
        for directive in directives {
            let is_of_response = directive.is("auth_request_set");
            // `set_escape_uri`, a directive of an nginx module, percent-encodes its value. The encoding is left out
            // here, because RockNet encodes the values that it inserts into URLs.
            if !is_of_response && !directive.is("set") && !directive.is("set_escape_uri") {
                continue;
            }
            let value = directive.argument(1);
            let known = all.entry((is_of_response, directive.argument(0).to_owned()));
            let known = known.or_insert_with(|| Some(value.to_owned()));
            if known.as_deref() != Some(value) {
                *known = None;
            }
        }
        let mut variables = Variables {
            texts: HashMap::new(),
            fields: HashMap::new(),
            others: BTreeSet::new(),
        };
        for ((is_of_response, name), value) in all {
            match value {
                Some(value) if !is_of_response => drop(variables.texts.insert(name, value)),
                Some(value) => match value.strip_prefix("$upstream_http_") {
                    Some(field) => drop(variables.fields.insert(name, field.to_owned())),
                    None => drop(variables.others.insert(name)),
                },
                None if is_of_response => drop(variables.others.insert(name)),
                None => {}
            }
        }
        variables
    }

    /// Replaces the variables in a text by their values in `texts`. Other variables stay.
    pub fn expand(&self, text: &str) -> String {
        replace(text, |name| self.texts.get(name).cloned())
    }

    /// Returns the names of the identity's fields in alphabetical order, in the form that nginx uses for variables:
    /// `x_user` for `X-User`.
    pub fn identity(&self) -> BTreeSet<&str> {
        let all = self.fields.values().map(String::as_str);
        all.filter(|field| !NO_IDENTITY.contains(field)).collect()
    }
}

/// Adds the directives of a block, with those of all blocks in it.
fn flatten<'d>(block: &'d Directive, all: &mut Vec<&'d Directive>) {
    for directive in block.children() {
        all.push(directive);
        flatten(directive, all);
    }
}

/// Replaces variables in a text. `value`: returns the text for the name of a variable with its `$`; `None` to keep the
/// variable.
pub(super) fn replace(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let (name, length) = match after.strip_prefix("${").and_then(|braced| braced.split_once('}')) {
            Some((name, _)) => (format!("${name}"), name.len() + 3),
            None => {
                let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let end = after[1..].find(is_end).map_or(after.len(), |end| end + 1);
                (after[..end].to_owned(), end)
            }
        };
        out.push_str(&value(&name).unwrap_or_else(|| after[..length].to_owned()));
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// Returns true if a text contains a variable. `variable`: name with its `$`.
pub(super) fn has_variable(text: &str, variable: &str) -> bool {
    let is_found = Cell::new(false);
    replace(text, |name| {
        is_found.set(is_found.get() || name == variable);
        None
    });
    is_found.get()
}

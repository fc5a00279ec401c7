//! Moves locations out of the locations that contain them, with the directives that they inherit.

use crate::directive::Directive;

use super::place::{LocationMatch, matched};

/// Directives of a location that its inner locations do not inherit. Those that end in `_pass` are not inherited
/// either.
const OWN: [&str; 9] = [
    "location",
    "return",
    "rewrite",
    "if",
    "set",
    "break",
    "try_files",
    "alias",
    "internal",
];

/// Directives that form one list. A location with one of them inherits none of them. Any other directive is inherited
/// unless the location has one of the same name.
const LIST: [&str; 2] = ["allow", "deny"];

/// Returns a server in which locations for prefixes and exact paths stand beside the locations that contained them.
/// Locations for expressions stay inside, because they apply only within their location.
pub(super) fn flatten(server: &Directive) -> Directive {
    let mut flat = server.clone();
    let mut all = Vec::new();
    let mut moved = Vec::new();
    for directive in server.children() {
        match directive.is("location") {
            true => {
                let mut found = Vec::new();
                add(directive.clone(), &mut found);
                moved.extend(all.len() + 1..all.len() + found.len());
                all.append(&mut found);
            }
            false => all.push(directive.clone()),
        }
    }
    for at in moved {
        if let Some(arguments) = without_final(&all[at], server) {
            all[at].arguments = arguments;
        }
    }
    flat.block = Some(all);
    flat
}

/// Returns the arguments of an inner location without its `^~`; `None` if they remain the same. An inner `^~` only
/// keeps nginx from the expressions beside it. nginx still tries those of the server, unless the longest matching
/// prefix of the server has `^~`, too.
fn without_final(inner: &Directive, server: &Directive) -> Option<Vec<String>> {
    let LocationMatch::Prefix { path, is_final: true } = matched(inner) else {
        return None;
    };
    let locations = server.children().iter().filter(|d| d.is("location"));
    let prefixes = locations.filter_map(|outer| match matched(outer) {
        LocationMatch::Prefix { path: prefix, is_final } if path.starts_with(&prefix) => Some((prefix.len(), is_final)),
        _ => None,
    });
    let longest = prefixes.max_by_key(|(length, _)| *length);
    let tries_expressions = !longest.is_some_and(|(_, is_final)| is_final);
    // Another path could be read as a modifier. No request has it.
    (tries_expressions && path.starts_with('/')).then(|| vec![path])
}

/// Adds a location to `all`. Then adds each inner location that is not for an expression, with the directives that it
/// inherits.
fn add(mut location: Directive, all: &mut Vec<Directive>) {
    let is_moved =
        |d: &Directive| d.is("location") && d.block.is_some() && !matches!(matched(d), LocationMatch::Expression(..));
    let block = location.block.take().unwrap_or_default();
    let (moved, kept): (Vec<Directive>, Vec<Directive>) = block.into_iter().partition(is_moved);
    location.block = Some(kept);
    let inherited = location.clone();
    all.push(location);
    for mut inner in moved {
        let own = inner.block.take().unwrap_or_default();
        let has = |name: &str| own.iter().any(|d| d.is(name));
        let needs_no_password = own.iter().any(|d| d.is("auth_basic") && d.argument(0) == "off");
        let is_inherited = |d: &&Directive| {
            let is_replaced = has(&d.name)
                || LIST.contains(&d.name.as_str()) && LIST.iter().any(|name| has(name))
                || needs_no_password && d.is("auth_basic_user_file");
            !OWN.contains(&d.name.as_str()) && !d.name.ends_with("_pass") && !is_replaced
        };
        let block = inherited.children().iter().filter(is_inherited).cloned();
        inner.block = Some(block.chain(own.iter().cloned()).collect());
        add(inner, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the locations of a flattened server, each with its directives.
    fn flattened(text: &str) -> Vec<String> {
        let tree = super::super::read(text).unwrap();
        let flat = flatten(&tree[0]);
        let locations = flat.children().iter().map(|location| {
            let inner = location.children().iter().map(Directive::text);
            format!("{}: {}", location.text(), inner.collect::<Vec<_>>().join("; "))
        });
        locations.collect()
    }

    #[test]
    fn inner_locations_inherit_and_stand_beside_the_outer_one() {
        let text = "server { location /a/ { root /srv; deny all; proxy_pass http://b; location = /a/x { expires 1d; } \
                    location /a/y/ { allow all; location ~ z { return 403; } } } }";
        assert_eq!(
            flattened(text),
            [
                "location /a/: root /srv; deny all; proxy_pass http://b",
                "location = /a/x: root /srv; deny all; expires 1d",
                "location /a/y/: root /srv; allow all; location ~ z",
            ]
        );
    }

    #[test]
    fn an_inner_final_prefix_does_not_keep_the_expressions_of_the_server_from_matching() {
        for (text, expected) in [
            ("location / { location ^~ /a/ { } }", "location /a/: "),
            ("location / { location ^~/a/ { } }", "location /a/: "),
            (
                "location / { location /a/ { location ^~ /a/b/ { } } }",
                "location /a/b/: ",
            ),
            ("location ~ ^/a { location ^~ /a/b/ { } }", "location /a/b/: "),
            ("location ^~ / { location ^~ /a/ { } }", "location ^~ /a/: "),
            // nginx selects `location /a/` of the server.
            (
                "location /a/ { } location ^~ / { location ^~ /a/b/ { } }",
                "location /a/b/: ",
            ),
        ] {
            let found = flattened(&format!("server {{ {text} }}"));
            assert_eq!(found.last().map(String::as_str), Some(expected), "{text}");
        }
    }

    #[test]
    fn realm_and_file_of_passwords_are_inherited_separately() {
        let text = "server { location /a/ { auth_basic x; auth_basic_user_file /u; location /a/b/ { \
                    auth_basic_user_file /v; } location /a/c/ { auth_basic off; } } }";
        assert_eq!(
            flattened(text),
            [
                "location /a/: auth_basic x; auth_basic_user_file /u",
                "location /a/b/: auth_basic x; auth_basic_user_file /v",
                "location /a/c/: auth_basic off",
            ]
        );
    }
}

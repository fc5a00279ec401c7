//! Replaces the path of an internal location in `mirror` by the address of its `proxy_pass`.
//!
//! ```text
//! mirror /copy;
//! location = /copy { internal; proxy_pass http://127.0.0.1:8081$request_uri; }
//! ```
//!
//! becomes `mirror http://127.0.0.1:8081`, which `upstream::settings` translates to `proxy.mirror`.

use crate::directive::Directive;

use super::place::{LocationMatch, matched};

/// Replaces the paths in `mirror` by addresses, and removes the locations that they name. The path of a location with
/// another form stays, and gets a note in `upstream::settings`.
pub(super) fn resolve(server: &mut Directive) {
    let mut addresses: Vec<(String, String)> = Vec::new();
    for location in server.children().iter().filter(|d| d.is("location")) {
        let path = match matched(location) {
            LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path,
            _ => continue,
        };
        let pass = location.children().iter().find(|d| d.is("proxy_pass"));
        let is_internal = location.children().iter().any(|d| d.is("internal"));
        let address = pass.map(|pass| pass.argument(0).trim_end_matches("$request_uri").to_owned());
        if let Some(address) = address.filter(|address| is_internal && !address.contains('$')) {
            addresses.push((path, address));
        }
    }
    let mut used = Vec::new();
    replace(server.block.as_deref_mut().unwrap_or_default(), &addresses, &mut used);
    if let Some(block) = &mut server.block {
        block.retain(|d| {
            let path = match matched(d) {
                LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path,
                _ => String::new(),
            };
            !(d.is("location") && used.contains(&path))
        });
    }
}

fn replace(directives: &mut [Directive], addresses: &[(String, String)], used: &mut Vec<String>) {
    for directive in directives {
        if directive.is("mirror")
            && let Some((path, address)) = addresses.iter().find(|(path, _)| path == directive.argument(0))
        {
            used.push(path.clone());
            directive.arguments = vec![address.clone()];
        }
        replace(directive.block.as_deref_mut().unwrap_or_default(), addresses, used);
    }
}

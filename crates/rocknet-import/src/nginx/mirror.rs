//! Replaces the path of an internal location in `mirror` by the address of its `proxy_pass`.
//!
//! ```text
//! mirror /copy;
//! location = /copy { internal; proxy_pass http://127.0.0.1:8081$request_uri; }
//! ```
//!
//! becomes `mirror http://127.0.0.1:8081`, which `upstream::settings` translates to `proxy.mirror`.

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;

use super::place::{LocationMatch, matched};
use super::upstream::{self, Upstreams};

/// Address of an internal location that `mirror` may name.
struct MirrorAddress {
    path: String,
    url: String,
    /// True if the address is one of several servers of an `upstream` block.
    is_one_of_several: bool,
    /// True if every server of the block is `down`.
    is_drained: bool,
}

/// Replaces the paths in `mirror` by addresses, and removes the locations that they name. The path of a location with
/// another form stays, and gets a note in `upstream::settings`. Returns notes about differences.
pub(super) fn resolve(server: &mut Directive, upstreams: &Upstreams) -> Vec<Note> {
    let mut addresses = Vec::new();
    for location in server.children().iter().filter(|d| d.is("location")) {
        let path = match matched(location) {
            LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path,
            _ => continue,
        };
        let pass = location.children().iter().find(|d| d.is("proxy_pass"));
        let is_internal = location.children().iter().any(|d| d.is("internal"));
        let address = pass.map(|pass| pass.argument(0).trim_end_matches("$request_uri").to_owned());
        if let Some(address) = address.filter(|address| is_internal && !address.contains('$')) {
            // `proxy.mirror` takes one server, and no name of a group.
            let group = upstream::target(&address, upstreams).filter(|target| target.is_group && target.path.is_none());
            let servers = group.map(|target| target.proxy);
            addresses.push(MirrorAddress {
                path,
                url: servers
                    .as_ref()
                    .and_then(|proxy| proxy.first_active())
                    .map_or(address, |server| server.url.clone()),
                is_drained: servers.as_ref().is_some_and(|proxy| proxy.is_drained()),
                is_one_of_several: servers.is_some_and(|proxy| proxy.servers.len() > 1),
            });
        }
    }
    let (mut used, mut notes) = (Vec::new(), Vec::new());
    let block = server.block.as_deref_mut().unwrap_or_default();
    replace(block, &addresses, &mut used, &mut notes);
    if let Some(block) = &mut server.block {
        block.retain(|d| {
            let path = match matched(d) {
                LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path,
                _ => String::new(),
            };
            !(d.is("location") && used.contains(&path))
        });
    }
    notes
}

fn replace(directives: &mut [Directive], addresses: &[MirrorAddress], used: &mut Vec<String>, notes: &mut Vec<Note>) {
    for directive in directives {
        if directive.is("mirror")
            && let Some(address) = addresses.iter().find(|address| address.path == directive.argument(0))
        {
            if address.is_drained {
                notes.differs(directive, upstream::ALL_DOWN);
            }
            if address.is_one_of_several {
                notes.differs(
                    directive,
                    "`proxy.mirror` takes one server, so one of the group gets all copies",
                );
            }
            used.push(address.path.clone());
            directive.arguments = vec![address.url.clone()];
        }
        replace(
            directive.block.as_deref_mut().unwrap_or_default(),
            addresses,
            used,
            notes,
        );
    }
}

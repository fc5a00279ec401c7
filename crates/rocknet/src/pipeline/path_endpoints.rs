//! Endpoints of the routes that a path leads to, whose guards all have to admit the request.

use std::sync::Arc;

use rocknet_proto::semantics::safe_path::SafePath;

use super::route::{self, Resolved};
use crate::endpoint::Endpoint;
use crate::files::entry::Entry;
use crate::files::tree::Tree;
use crate::site::SiteRoutes;

/// Returns the endpoint of another route that applies to the file of a cache entry of `tree`, if there is one.
pub(super) fn of_entry<'p>(routes: &'p SiteRoutes, tree: &Arc<Tree>, entry: &Entry) -> Option<&'p Arc<Endpoint>> {
    routes.endpoint_of_file(tree, entry.file.as_ref()?)
}

/// Returns the endpoints of the routes that a path leads to; `None` if a back end could resolve the path to a path
/// above the root.
pub(super) fn of_path<'p>(
    routes: &'p SiteRoutes,
    resolved: &Resolved<'p>,
    raw: &[u8],
) -> Option<Vec<&'p Arc<Endpoint>>> {
    let mut found = vec![resolved.endpoint];
    found.extend(routes.endpoint_with_toggled_trailing_slash(&resolved.path));
    let tree = resolved.endpoint.tree.as_ref();
    if tree.is_some_and(|tree| tree.is_program(&resolved.path)) {
        // The first slash begins the path, so no program ends there.
        for (end, _) in resolved.path.match_indices('/').skip(1) {
            let (program, path_info) = resolved.path.split_at(end);
            found.push(routes.endpoint(program));
            found.extend(of_path_info(routes, path_info));
        }
    }
    // A path with an encoded slash or a backslash cannot be the path of a file.
    if !resolved.is_file_path {
        for slashes in OTHER_SLASHES {
            found.push(routes.endpoint(&route::resolve(routes, &decode_slashes(raw, slashes)).ok()?.path));
        }
    }
    Some(found)
}

/// Returns the endpoints of a path info, because front controllers use it as the path: as written, and normalized with
/// each backslash replaced by a slash.
pub(super) fn of_path_info<'p>(
    routes: &'p SiteRoutes,
    path_info: &str,
) -> impl Iterator<Item = &'p Arc<Endpoint>> + use<'p> {
    let decoded = path_info.replace('\\', "/");
    let decoded = SafePath::from_decoded(&decoded).map(SafePath::into_str);
    let of_decoded = decoded.ok().map(|path| routes.endpoint(&path));
    let is_empty = path_info.is_empty();
    std::iter::once(routes.endpoint(path_info))
        .chain(of_decoded)
        .filter(move |_| !is_empty)
}

/// Byte strings that back ends can treat as a slash: most back ends decode the whole path, and on Windows a backslash
/// is a separator too. Each set is tried separately, because each can lead to another route. The path `/a%2fx%5c..`
/// becomes `/a/x%5c..` with the first set, and `/a/x/..`, which is `/a`, with the last.
const OTHER_SLASHES: [&[&[u8]]; 3] = [
    &[b"%2F", b"%2f"],
    &[b"\\", b"%5C", b"%5c"],
    &[b"%2F", b"%2f", b"\\", b"%5C", b"%5c"],
];

/// Replaces each occurrence of a string in `slashes` by a slash.
fn decode_slashes(raw: &[u8], slashes: &[&[u8]]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(first) = rest.first() {
        let slash = slashes.iter().find(|slash| rest.starts_with(slash));
        decoded.push(slash.map_or(*first, |_| b'/'));
        rest = &rest[slash.map_or(1, |slash| slash.len())..];
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_decoded_one_set_at_a_time() {
        // Raw path, and the path decoded by each set of `OTHER_SLASHES`.
        for (raw, expected) in [
            ("/a/b", ["/a/b"; 3]),
            ("/a%2Fb%2fc", ["/a/b/c", "/a%2Fb%2fc", "/a/b/c"]),
            ("/a\\b%5Cc%5c", ["/a\\b%5Cc%5c", "/a/b/c/", "/a/b/c/"]),
            ("/a%2fx%5c..", ["/a/x%5c..", "/a%2fx/..", "/a/x/.."]),
            ("/%252f%2", ["/%252f%2"; 3]),
        ] {
            for (slashes, expected) in OTHER_SLASHES.into_iter().zip(expected) {
                let decoded = decode_slashes(raw.as_bytes(), slashes);
                assert_eq!(String::from_utf8_lossy(&decoded), expected, "{raw}");
            }
        }
    }
}

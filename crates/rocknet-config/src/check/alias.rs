//! Checks `alias` of a route: a folder needs a route for a prefix, and a file needs a route for a single path.

use crate::context::Check;
use crate::environment::FileKind;
use crate::file::Table;
use crate::finding::Code;
use crate::model::{Pattern, Route, Settings};

/// Completes the alias of a route with the path of its pattern: `/img` for the route `/img/*`.
///
/// A folder is accepted only for a pattern that ends in `/*`, and a file only for a single path. The part of a request
/// path that is appended to the folder therefore begins with a slash. In nginx it need not: `location /img` also
/// matches `/img../secret`, and `../secret` is appended to the folder.
pub(super) fn mount(check: &mut Check<'_>, table: &Table, pattern: &Pattern, settings: &mut Settings) {
    let (Some(entry), Some(alias)) = (table.entries.get("alias"), &mut settings.alias) else {
        return;
    };
    // The folder or file of `alias` was read into `settings.root`.
    let Some(target) = settings.root.clone() else { return };
    if let Some(root) = table.entries.get("root") {
        let message = "a route has either `root` or `alias`".to_owned();
        let help = "keep `alias` if the path of the route is no folder on disk, otherwise `root`";
        check.conflict(entry.key, ("the other is here", root.key), message, help);
        return;
    }
    let kind = check.env.kind(&target);
    let span = entry.node.span;
    let error = match (pattern, kind) {
        (_, None) => {
            let help = "correct the path; relative paths start at the folder of the configuration file";
            check.site_error(
                Code::Missing,
                span,
                format!("`alias`: {} does not exist", target.display()),
                help,
            );
            None
        }
        (Pattern::Prefix(_), Some(FileKind::Directory))
        | (Pattern::Exact(_), Some(FileKind::File | FileKind::Other)) => None,
        (Pattern::Prefix(_), Some(_)) => Some((
            format!("{} is a file, and the route is for a folder", target.display()),
            "write its folder, or a route for one path such as \"/favicon.ico\"".to_owned(),
        )),
        (Pattern::Exact(path), Some(_)) => Some((
            format!("{} is a folder, and the route is for one path", target.display()),
            format!("write the route \"{}/*\"", path.trim_end_matches('/')),
        )),
        (Pattern::Glob(_) | Pattern::Regex(_), Some(_)) => Some((
            "the pattern of the route names no folder".to_owned(),
            "write a route such as \"/img/*\"; other patterns select files, and have a `root`".to_owned(),
        )),
    };
    if let Some((message, help)) = error {
        check.error(Code::BadValue, span, format!("`alias`: {message}"), help);
        return;
    }
    match pattern {
        Pattern::Prefix(path) => path.trim_end_matches('/').clone_into(&mut alias.path),
        Pattern::Exact(path) => {
            let name = target.file_name().and_then(|name| name.to_str());
            if let (Some(name), Some(folder)) = (name, target.parent()) {
                path.clone_into(&mut alias.path);
                alias.file = Some(name.to_owned());
                settings.root = Some(folder.to_owned());
            }
        }
        Pattern::Glob(_) | Pattern::Regex(_) => {}
    }
}

/// Adds a route for the path of each folder itself, such as `/img` for `/img/*`, unless the site has one. Its response
/// is the redirect to the path with a slash, as for every folder.
pub(super) fn add_folders(routes: &mut Vec<Route>) {
    let mut added = Vec::new();
    for route in routes.iter() {
        let Some(alias) = route.settings.alias.as_ref().filter(|alias| alias.file.is_none()) else {
            continue;
        };
        let pattern = Pattern::Exact(alias.path.clone());
        if !alias.path.is_empty() && !routes.iter().any(|other| other.pattern == pattern) {
            added.push(Route {
                pattern,
                ..route.clone()
            });
        }
    }
    routes.append(&mut added);
}

//! Resolves a path to a file, folder or script on disk. The [`DiskLookup`] determines whether a function may block.

mod query;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocknet_config::model::Fallback;
use rocknet_io::confined_fs::{FileKind, OpenError, OpenedFile, Root};
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use self::query::PATH;
use crate::disk_lookup::DiskLookup;
use crate::failure_log;
use crate::front_controller;
use crate::script::{self, AliasScript, NameClass, Script};
use crate::tree::Tree;

/// Target of a path. `relative`: path below the root of the tree.
pub enum Target {
    /// A file.
    File { opened: OpenedFile, relative: Vec<u8> },
    /// A directory requested without its trailing slash.
    WithoutSlash,
    /// A directory without an index file, which may be listed.
    Directory { relative: Vec<u8> },
    /// A script to be run, in trees that run scripts.
    Script(Script),
    /// An error.
    Failed(Status),
}

/// Resolves `path`, which is decoded and normalized and has a leading slash. A trailing slash requests a directory.
///
/// Some paths never name a file that is served, because [`SafePath`] refuses them on every system. An example is
/// `/wiki/Special:Search`, because of the meaning of the colon on Windows. For such a path, only a script at its
/// beginning, a template of `try` without `{path}` or the fallback is found.
pub fn resolve(lookup: &DiskLookup, tree: &Tree, path: &str) -> Target {
    let root = match lookup.root(tree) {
        Ok(root) => root,
        // The caller discards the result of a lookup that would block.
        Err(_) if lookup.would_block() => return Target::Failed(Status::SERVICE_UNAVAILABLE),
        Err(error) => return failed_root(tree, &error),
    };
    // Names with a leading dot, except `.well-known`, are not served, because they are private to the operator: files
    // of version control, editors and the shell. After a script, they are names of the application and not of files:
    // `/remote.php/dav/files/ada/.bashrc`.
    let safe = SafePath::from_decoded(path);
    if safe.as_ref().is_ok_and(SafePath::has_dot_segment) {
        let script = script_in_path(lookup, &root, tree, path);
        return script.map_or(Target::Failed(Status::NOT_FOUND), Target::Script);
    }
    let found = match first_match(lookup, &root, tree, path, safe.is_ok()) {
        Err(Status::NOT_FOUND) => match (script_in_path(lookup, &root, tree, path), &tree.fallback) {
            (Some(script), _) => Ok(Target::Script(script)),
            (None, Fallback::Path(fallback)) => {
                let (name, query) = query::split(fallback);
                look_up(lookup, &root, tree, name).map(|found| with_query(found, query, path))
            }
            (None, Fallback::Default) if tree.runs_scripts => {
                let script = front_controller::find(lookup, &root, tree, path);
                look_up(lookup, &root, tree, &script)
            }
            (None, Fallback::Default | Fallback::Off) => Err(Status::NOT_FOUND),
        },
        found => found,
    };
    found.unwrap_or_else(Target::Failed)
}

/// Opens the file at `path` without `try` and `fallback`, for error pages. Returns the file with its path below the
/// root.
pub fn resolve_file(lookup: &DiskLookup, tree: &Tree, path: &str) -> Option<(OpenedFile, Vec<u8>)> {
    match look_up(lookup, &lookup.root(tree).ok()?, tree, path) {
        Ok(Target::File { opened, relative }) => Some((opened, relative)),
        _ => None,
    }
}

/// Looks up the templates of `try` in order, or without templates the path itself. `is_file_path`: false if
/// [`SafePath`] refuses the path. Templates with `{path}` before their query are then skipped. `{path}` in a query does
/// not matter, because a query names no file: `/index.php?q={path}`.
fn first_match(
    lookup: &DiskLookup,
    root: &Arc<Root>,
    tree: &Tree,
    path: &str,
    is_file_path: bool,
) -> Result<Target, Status> {
    if tree.try_paths.is_empty() && is_file_path {
        return look_up(lookup, root, tree, path);
    }
    for template in &tree.try_paths {
        let (template, query) = query::split(template);
        if !is_file_path && template.contains(PATH) {
            continue;
        }
        let candidate = expand(template, path);
        match look_up(lookup, root, tree, &candidate) {
            Err(Status::NOT_FOUND) => {}
            found => return found.map(|found| with_query(found, query, path)),
        }
    }
    Err(Status::NOT_FOUND)
}

/// Adds the query of a template to a script. Files have no use for a query. `path`: path of the request.
fn with_query(found: Target, query: Option<&str>, path: &str) -> Target {
    match (found, query) {
        (Target::Script(mut script), Some(query)) => {
            script.query = query::expand(query, path).into();
            Target::Script(script)
        }
        (found, _) => found,
    }
}

/// Expands a template. For the path `/about/`, the template `{path}.html` expands to `/about.html`. Only the template
/// `{path}` keeps the trailing slash.
fn expand(template: &str, path: &str) -> String {
    match template {
        PATH => path.to_owned(),
        _ => template.replace(PATH, path.trim_end_matches('/')),
    }
}

/// Looks up the file, folder or script that exactly this path names, or the index file of the folder.
fn look_up(lookup: &DiskLookup, root: &Arc<Root>, tree: &Tree, path: &str) -> Result<Target, Status> {
    let path = tree.inside(path).ok_or(Status::NOT_FOUND)?;
    let wants_directory = path.ends_with('/');
    let relative = path.trim_matches('/').as_bytes();
    if wants_directory {
        for index in &tree.index {
            let relative = join(relative, index.as_bytes());
            match open(lookup, root, tree, &relative) {
                Ok(opened) if opened.meta.kind == FileKind::File => return classify(lookup, tree, opened, relative),
                Ok(_) | Err(Status::NOT_FOUND) => {}
                Err(status) => return Err(status),
            }
        }
    }
    let relative = if relative.is_empty() {
        b".".to_vec()
    } else {
        relative.to_vec()
    };
    let opened = open(lookup, root, tree, &relative)?;
    match (opened.meta.kind, wants_directory) {
        (FileKind::File, false) => classify(lookup, tree, opened, relative),
        (FileKind::Directory, false) => Ok(Target::WithoutSlash),
        (FileKind::Directory, true) if tree.browse.is_some() => Ok(Target::Directory { relative }),
        _ => Err(Status::NOT_FOUND),
    }
}

/// Decides whether a file is sent, run or refused. A tree that runs scripts never sends them as files.
fn classify(lookup: &DiskLookup, tree: &Tree, opened: OpenedFile, relative: Vec<u8>) -> Result<Target, Status> {
    // Paths and configured names are valid UTF-8.
    let inside = String::from_utf8([b"/", &relative[..]].concat()).map_err(|_| Status::NOT_FOUND)?;
    let name = tree.of_site(&inside);
    if tree.is_program(&name) || is_program_on_disk(lookup, tree, &inside)? {
        failure_log::not_sent(tree, &relative, "it is in the folder of programs (`cgi`)");
        return Err(Status::FORBIDDEN);
    }
    if !tree.runs_scripts {
        return Ok(Target::File { opened, relative });
    }
    match class(tree, &name, &inside) {
        NameClass::File => Ok(Target::File { opened, relative }),
        NameClass::Refused => {
            failure_log::not_sent(tree, &relative, "its name is that of a script, but PHP does not run it");
            Err(Status::FORBIDDEN)
        }
        NameClass::Script => Ok(Target::Script(script(lookup, tree, &name, "")?)),
    }
}

/// Returns the class of a file by its path in the site. Below an alias, its path on disk must have the same class;
/// otherwise the file is refused. For example, with an alias from `/a.txt` to `a.php`, it is neither run nor sent.
fn class(tree: &Tree, name: &str, inside: &str) -> NameClass {
    let by_site = NameClass::of(name.as_bytes());
    if tree.place().is_none() {
        return by_site;
    }
    let on_disk = format!("{}{inside}", tree.folder().display());
    match NameClass::of(on_disk.as_bytes()) {
        by_disk if by_disk == by_site => by_site,
        _ => NameClass::Refused,
    }
}

/// Returns true if an alias leads to a file in the folder of CGI programs, which the path of the file in the site does
/// not show.
fn is_program_on_disk(lookup: &DiskLookup, tree: &Tree, inside: &str) -> Result<bool, Status> {
    let document_root = tree.place().and_then(|place| place.document_root.as_deref());
    let (Some(document_root), Some(programs)) = (document_root, tree.programs()) else {
        return Ok(false);
    };
    let file = canonical_root(lookup, tree)?.join(inside.trim_start_matches('/'));
    let programs = canonical_or_same(lookup, document_root).join(programs.trim_start_matches('/'));
    Ok(file.starts_with(programs))
}

/// Returns the script or program at a path of the site, which is followed by `path_info` in the path of the request.
///
/// # Errors
///
/// Fails if the path is outside of the alias of the tree, or if a folder cannot be resolved.
pub fn script(lookup: &DiskLookup, tree: &Tree, name: &str, path_info: &str) -> Result<Script, Status> {
    let folder = canonical_root(lookup, tree)?;
    let Some(place) = tree.place() else {
        return Ok(Script::new(&folder, name, path_info));
    };
    let inside = tree.inside(name).ok_or(Status::NOT_FOUND)?;
    // The document root is that of the site, as with `Alias` of Apache. Its files are not opened here.
    let document_root = place.document_root.as_deref();
    let document_root = document_root.map(|root| canonical_or_same(lookup, root));
    let file = folder.join(inside.trim_start_matches('/'));
    let mut script = Script::new(document_root.as_ref().unwrap_or(&folder), name, path_info);
    script.alias = Some(Box::new(AliasScript {
        prefix: place.prefix.clone(),
        folder: folder.into_os_string().into(),
        file: file.into_os_string().into(),
    }));
    Ok(script)
}

/// Returns the path of the tree's folder without symbolic links.
pub fn canonical_root(lookup: &DiskLookup, tree: &Tree) -> Result<PathBuf, Status> {
    lookup.canonical_root(tree).map_err(|error| {
        if !lookup.would_block() {
            failure_log::root(tree, &error, "cannot resolve the path of the folder");
        }
        Status::SERVICE_UNAVAILABLE
    })
}

/// Returns a path without symbolic links; the same path if it cannot be resolved.
fn canonical_or_same(lookup: &DiskLookup, path: &Path) -> PathBuf {
    lookup.canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Finds the script that the beginning of `path` names: `/a.php` for `/a.php/b/c`, if that file exists. [`SafePath`]
/// may refuse the rest of the path, which is not a path on disk.
fn script_in_path(lookup: &DiskLookup, root: &Arc<Root>, tree: &Tree, path: &str) -> Option<Script> {
    tree.runs_scripts.then_some(())?;
    script::script_ends(path).take(MAX_SCRIPT_ENDS).find_map(|end| {
        let (name, path_info) = path.split_at(end);
        if SafePath::from_decoded(name).ok()?.has_dot_segment() {
            return None;
        }
        match look_up(lookup, root, tree, name).ok()? {
            Target::Script(found) => Some(found.with_path_info(path_info)),
            _ => None,
        }
    })
}

/// Maximum number of positions in a path at which a script is looked up. A path can have a thousand such positions, and
/// each requires a lookup.
const MAX_SCRIPT_ENDS: usize = 4;

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// Opens a file or folder below the root, and logs errors that the operator can fix.
pub fn open(lookup: &DiskLookup, root: &Arc<Root>, tree: &Tree, relative: &[u8]) -> Result<OpenedFile, Status> {
    lookup
        .open(root, relative, tree.symlinks)
        .map_err(|error| logged_status(&error, tree, relative))
}

/// Maps an error to a status, and logs what the operator can fix: links that lead out of the root, 403, 500 and 503.
pub fn logged_status(error: &OpenError, tree: &Tree, relative: &[u8]) -> Status {
    match error {
        OpenError::NotFound => Status::NOT_FOUND,
        OpenError::Escapes => {
            failure_log::link_out(tree, relative);
            Status::NOT_FOUND
        }
        OpenError::Forbidden => {
            failure_log::forbidden(tree, relative);
            Status::FORBIDDEN
        }
        OpenError::Resources => {
            failure_log::shortage(tree, error);
            Status::SERVICE_UNAVAILABLE
        }
        // Not logged, because the lookup would block and its result is discarded.
        OpenError::WouldBlock => Status::INTERNAL_SERVER_ERROR,
        OpenError::Io(cause) => {
            failure_log::unreadable(tree, relative, cause);
            Status::INTERNAL_SERVER_ERROR
        }
    }
}

/// Logs that the folder of the tree cannot be opened, and returns the target.
fn failed_root(tree: &Tree, error: &std::io::Error) -> Target {
    failure_log::root(tree, error, "cannot open the folder of a site");
    Target::Failed(match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Status::NOT_FOUND,
        std::io::ErrorKind::PermissionDenied => Status::FORBIDDEN,
        _ => Status::SERVICE_UNAVAILABLE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded() {
        for (template, path, expected) in [
            ("{path}", "/a/", "/a/"),
            ("{path}.html", "/about", "/about.html"),
            ("{path}.html", "/about/", "/about.html"),
            ("{path}/index.html", "/", "/index.html"),
            ("/index.html", "/x", "/index.html"),
        ] {
            assert_eq!(expand(template, path), expected, "{template} of {path}");
        }
    }
}

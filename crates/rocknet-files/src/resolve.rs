//! From a path to what is there on disk. What may be waited for, the [`Look`] says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocknet_config::model::Fallback;
use rocknet_io::confined_fs::{FileKind, OpenError, OpenedFile, Root};
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use crate::look::Look;
use crate::missed;
use crate::script;
use crate::script::Script;
use crate::tree::Tree;

/// What a path leads to.
pub enum Target {
    File {
        opened: OpenedFile,
        relative: Vec<u8>,
    },
    /// A directory asked for without its slash.
    WithoutSlash,
    /// A directory without an index file, that may be listed.
    Directory {
        relative: Vec<u8>,
    },
    /// A script to be run, where somebody runs them.
    Script(Script),
    Failed(Status),
}

/// Looks `path` up: decoded, normalised, beginning with a slash; a slash at its end asks for a directory.
pub fn resolve(look: &Look, tree: &Tree, path: &str) -> Target {
    let root = match look.root(tree) {
        Ok(root) => root,
        Err(_) if look.lacks() => return Target::Failed(Status::SERVICE_UNAVAILABLE),
        Err(error) => return failed_root(tree, &error),
    };
    // Names with a dot before them are the operator's: version control, editors' and the shell's files.
    let safe = SafePath::from_decoded(path);
    if safe.as_ref().is_ok_and(SafePath::has_dot_segment) {
        return Target::Failed(Status::NOT_FOUND);
    }
    let found = match first_match(look, &root, tree, safe.is_ok().then_some(path)) {
        Err(Status::NOT_FOUND) => match (script_before(look, &root, tree, path), &tree.fallback) {
            (Some(script), _) => Ok(Target::Script(script)),
            (None, Fallback::Path(fallback)) => look_up(look, &root, tree, fallback),
            (None, Fallback::Default) if tree.runs_scripts => look_up(look, &root, tree, FRONT_CONTROLLER),
            (None, Fallback::Default | Fallback::Off) => Err(Status::NOT_FOUND),
        },
        found => found,
    };
    found.unwrap_or_else(Target::Failed)
}

/// A file at exactly `path`, for pages of errors.
pub fn resolve_file(look: &Look, tree: &Tree, path: &str) -> Option<(OpenedFile, Vec<u8>)> {
    match look_up(look, &look.root(tree).ok()?, tree, path) {
        Ok(Target::File { opened, relative }) => Some((opened, relative)),
        _ => None,
    }
}

/// `path` is none where no file can have it: then only what does not depend on it is tried.
fn first_match(look: &Look, root: &Arc<Root>, tree: &Tree, path: Option<&str>) -> Result<Target, Status> {
    if let (true, Some(path)) = (tree.try_paths.is_empty(), path) {
        return look_up(look, root, tree, path);
    }
    for template in &tree.try_paths {
        let candidate = match path {
            Some(path) => fill(template, path),
            None if template.contains(PATH) => continue,
            None => template.clone(),
        };
        match look_up(look, root, tree, &candidate) {
            Err(Status::NOT_FOUND) => {}
            found => return found,
        }
    }
    Err(Status::NOT_FOUND)
}

/// What a template of `try` puts the path of the request for.
const PATH: &str = "{path}";

/// `{path}.html` of `/about/` is `/about.html`: only `{path}` alone keeps the slash.
fn fill(template: &str, path: &str) -> String {
    match template {
        PATH => path.to_owned(),
        _ => template.replace(PATH, path.trim_end_matches('/')),
    }
}

fn look_up(look: &Look, root: &Arc<Root>, tree: &Tree, path: &str) -> Result<Target, Status> {
    let wants_directory = path.ends_with('/');
    let relative = path.trim_matches('/').as_bytes();
    if wants_directory {
        for index in &tree.index {
            let relative = join(relative, index.as_bytes());
            match open(look, root, tree, &relative) {
                Ok(opened) if opened.meta.kind == FileKind::File => return file(look, tree, opened, relative),
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
    let opened = open(look, root, tree, &relative)?;
    match (opened.meta.kind, wants_directory) {
        (FileKind::File, false) => file(look, tree, opened, relative),
        (FileKind::Directory, false) => Ok(Target::WithoutSlash),
        (FileKind::Directory, true) if tree.browse => Ok(Target::Directory { relative }),
        _ => Err(Status::NOT_FOUND),
    }
}

/// What is to be done with a file: where scripts are run, they are never sent.
fn file(look: &Look, tree: &Tree, opened: OpenedFile, relative: Vec<u8>) -> Result<Target, Status> {
    if tree.holds_program(&relative) {
        missed::not_sent(tree, &relative, "it is in the folder of programs (`cgi`)");
        return Err(Status::FORBIDDEN);
    }
    if !tree.runs_scripts {
        return Ok(Target::File { opened, relative });
    }
    match script::Kind::of(&relative) {
        script::Kind::File => Ok(Target::File { opened, relative }),
        script::Kind::Refused => {
            missed::not_sent(
                tree,
                &relative,
                "its name is that of a script which PHP is not asked to run",
            );
            Err(Status::FORBIDDEN)
        }
        script::Kind::Script => {
            let name = [b"/", &relative[..]].concat();
            // Paths and names in the configuration are text.
            let name = String::from_utf8(name).map_err(|_| Status::NOT_FOUND)?;
            Ok(Target::Script(Script::new(&whole(look, tree)?, &name, "")))
        }
    }
}

/// The folder without links in its path.
pub fn whole(look: &Look, tree: &Tree) -> Result<PathBuf, Status> {
    look.whole(tree).map_err(|error| {
        if !look.lacks() {
            missed::root(tree, &error, "cannot tell where the folder lies");
        }
        Status::SERVICE_UNAVAILABLE
    })
}

/// The script that `path` goes on behind: `/a.php` of `/a.php/b/c`, if there is such a file. What follows it may be
/// what no file can have as its name.
fn script_before(look: &Look, root: &Arc<Root>, tree: &Tree, path: &str) -> Option<Script> {
    tree.runs_scripts.then_some(())?;
    script::ends(path).take(MAX_ENDS).find_map(|end| {
        let (name, path_info) = path.split_at(end);
        if SafePath::from_decoded(name).ok()?.has_dot_segment() {
            return None;
        }
        match look_up(look, root, tree, name).ok()? {
            Target::Script(found) => Some(Script::new(Path::new(&found.root), &found.name, path_info)),
            _ => None,
        }
    })
}

/// What answers where nothing else does, if there is PHP: the one script of most applications.
const FRONT_CONTROLLER: &str = "/index.php";
/// Places in a path at which a script is looked for: a path can have a thousand, and each is a look at the disk.
const MAX_ENDS: usize = 4;

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

pub fn open(look: &Look, root: &Arc<Root>, tree: &Tree, relative: &[u8]) -> Result<OpenedFile, Status> {
    look.open(root, relative, tree.symlinks)
        .map_err(|error| status_of(&error, tree, relative))
}

/// Who can mend it decides the status: the client (404, 403), or the operator (503, 500), who is told.
pub fn status_of(error: &OpenError, tree: &Tree, relative: &[u8]) -> Status {
    match error {
        OpenError::NotFound | OpenError::Escapes => Status::NOT_FOUND,
        OpenError::Forbidden => {
            missed::forbidden(tree, relative);
            Status::FORBIDDEN
        }
        OpenError::Resources => {
            missed::shortage(tree, error);
            Status::SERVICE_UNAVAILABLE
        }
        // Told to nobody: the look lacks something, and what it gives does not count.
        OpenError::WouldBlock => Status::INTERNAL_SERVER_ERROR,
        OpenError::Io(cause) => {
            missed::unreadable(tree, relative, cause);
            Status::INTERNAL_SERVER_ERROR
        }
    }
}

fn failed_root(tree: &Tree, error: &std::io::Error) -> Target {
    missed::root(tree, error, "cannot open the folder of a site");
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
    fn templates_are_filled() {
        for (template, path, expected) in [
            ("{path}", "/a/", "/a/"),
            ("{path}.html", "/about", "/about.html"),
            ("{path}.html", "/about/", "/about.html"),
            ("{path}/index.html", "/", "/index.html"),
            ("/index.html", "/x", "/index.html"),
        ] {
            assert_eq!(fill(template, path), expected, "{template} of {path}");
        }
    }
}

//! Finds the program that a request path names: the first file along the path. Blocks on the disk.

use rocknet_io::confined_fs::FileKind;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use super::error::CgiError;
use rocknet_files::disk_lookup::DiskLookup;
use rocknet_files::resolve;
use rocknet_files::script::Script;
use rocknet_files::tree::Tree;

/// Maximum depth of a program below the folder of programs. Each level costs an access to the disk.
const MAX_DEPTH: usize = 8;
/// Execute bits of owner, group and others. Any of them counts, because the program may run as another user.
const EXECUTE_BITS: u32 = 0o111;

/// Finds the program that a path names: `/cgi-bin/a.sh` for `/cgi-bin/a.sh/more`. The path must lie in the folder of
/// programs (see [`Tree::is_program`]). The part after the program may contain bytes that no file name can have.
///
/// # Errors
///
/// Returns the status of the response, or the path of a file that is not executable.
pub fn find(tree: &Tree, path: &str) -> Result<Script, CgiError> {
    let missing = || CgiError::Status(Status::NOT_FOUND);
    let lookup = DiskLookup::blocking();
    let root = lookup
        .root(tree)
        .map_err(|_| CgiError::Status(Status::SERVICE_UNAVAILABLE))?;
    let folder = tree.programs().ok_or_else(missing)?;
    let rest = path.strip_prefix(folder).ok_or_else(missing)?;
    // Positions in `rest` at which the path of the program can end: each slash except the first, and the end of `rest`.
    let ends = rest.match_indices('/').skip(1).map(|(at, _)| at).chain([rest.len()]);
    for end in ends.take(MAX_DEPTH) {
        let (name, path_info) = path.split_at(folder.len() + end);
        let safe = SafePath::from_decoded(name).map_err(|_| missing())?;
        if safe.has_dot_segment() || safe.is_directory() {
            return Err(missing());
        }
        let inside = tree.inside(name).ok_or_else(missing)?;
        let opened = resolve::open(&lookup, &root, tree, inside.trim_start_matches('/').as_bytes());
        let opened = opened.map_err(CgiError::Status)?;
        match opened.meta.kind {
            FileKind::Directory => {}
            FileKind::File if opened.meta.mode & EXECUTE_BITS == 0 => {
                return Err(CgiError::NotExecutable(name.to_owned()));
            }
            FileKind::File => {
                return resolve::script(&lookup, tree, name, path_info).map_err(CgiError::Status);
            }
        }
    }
    Err(missing())
}

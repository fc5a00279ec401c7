//! Which program a path leads to: the first file on its way that is one. May wait for the disk.

use rocknet_io::confined_fs::FileKind;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use super::error::CgiError;
use rocknet_files::look::Look;
use rocknet_files::resolve;
use rocknet_files::script::Script;
use rocknet_files::tree::Tree;

/// Folders below the one of programs in which they are looked for: each is a look at the disk.
const MAX_DEPTH: usize = 8;
/// Any of the permissions to be executed: the user that it runs as may be another than ours.
const EXECUTE_BITS: u32 = 0o111;

/// `/cgi-bin/a.sh` of `/cgi-bin/a.sh/more`. What follows it may be what no file can have as its name.
pub fn find(tree: &Tree, path: &str) -> Result<Script, CgiError> {
    let missing = || CgiError::Status(Status::NOT_FOUND);
    let look = Look::patient();
    let root = look
        .root(tree)
        .map_err(|_| CgiError::Status(Status::SERVICE_UNAVAILABLE))?;
    let folder = tree.programs().ok_or_else(missing)?;
    let rest = path.strip_prefix(folder).ok_or_else(missing)?;
    let ends = rest.match_indices('/').skip(1).map(|(at, _)| at).chain([rest.len()]);
    for end in ends.take(MAX_DEPTH) {
        let (name, path_info) = path.split_at(folder.len() + end);
        let safe = SafePath::from_decoded(name).map_err(|_| missing())?;
        if safe.has_dot_segment() || safe.is_directory() {
            return Err(missing());
        }
        let opened = resolve::open(&look, &root, tree, &name.as_bytes()[1..]).map_err(CgiError::Status)?;
        match opened.meta.kind {
            FileKind::Directory => {}
            FileKind::File if opened.meta.mode & EXECUTE_BITS == 0 => {
                return Err(CgiError::NotExecutable(name.to_owned()));
            }
            FileKind::File => {
                let root = resolve::whole(&look, tree).map_err(CgiError::Status)?;
                return Ok(Script::new(&root, name, path_info));
            }
        }
    }
    Err(missing())
}

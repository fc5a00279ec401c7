//! Paths of Unix sockets, wherever one may be named.

use std::path::PathBuf;

use crate::check::Check;
use crate::finding::Code;
use crate::source::Span;

/// Longest path of a Unix socket: `sun_path` has 108 bytes on Linux, one of them the end.
pub(super) const MAX_PATH_BYTES: usize = 107;

/// What is to be written instead.
#[derive(Clone, Copy)]
pub(super) struct Help<'a> {
    /// Of what is no path.
    pub example: &'a str,
    /// Of one that is too long.
    pub shorter: &'a str,
}

/// The path of a socket, relative to the file it is written in. `key`: what takes it.
pub(super) fn path(check: &mut Check<'_>, key: &str, text: &str, span: Span, help: Help<'_>) -> Option<PathBuf> {
    let resolved = check.resolve(span, text);
    if text.is_empty() || text.ends_with('/') || text.contains(|c: char| c.is_control()) {
        let message = format!("`{key}` takes the path of a socket");
        check.error(Code::BadValue, span, message, help.example);
        return None;
    }
    if resolved.as_os_str().len() > MAX_PATH_BYTES {
        let message = format!("the path of a socket has at most {MAX_PATH_BYTES} bytes");
        check.error(Code::BadValue, span, message, help.shorter);
        return None;
    }
    Some(resolved)
}

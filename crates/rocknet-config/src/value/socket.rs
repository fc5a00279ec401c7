//! Parses paths of Unix sockets.

use std::path::PathBuf;

use crate::context::Check;
use crate::finding::Code;
use crate::source::Span;

/// Maximum length of the path of a Unix socket, in bytes: `sun_path` has 108 bytes on Linux, including a terminating
/// NUL.
pub(crate) const MAX_PATH_BYTES: usize = 107;

/// Help texts for invalid paths.
#[derive(Clone, Copy)]
pub(crate) struct Help<'a> {
    /// Help for a text that is not a path.
    pub example: &'a str,
    /// Help for a path that is too long.
    pub shorter: &'a str,
}

/// Reads the path of a socket; `None` after an error. A relative path starts at the folder of the configuration file.
/// `key`: name of the key in messages.
pub(crate) fn path(check: &mut Check<'_>, key: &str, text: &str, span: Span, help: Help<'_>) -> Option<PathBuf> {
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

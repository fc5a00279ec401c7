//! What servers are asked for: pages, files, and places to post to.

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// 13 bytes of HTML.
    Hello,
    /// A file of so many bytes.
    File(u64),
    /// The same 13 bytes, written by a script of PHP.
    Script,
    /// What no site has.
    Missing,
    /// Where content of so many bytes is posted to: answered by a handler, or by a redirect once the content has been read,
    /// which is the one answer to a POST that servers of files can give.
    Post(u64),
}

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

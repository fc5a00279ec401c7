//! Requested resources: pages, files, and URLs that accept a POST.

/// A requested resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// 13 bytes of HTML.
    Hello,
    /// A file of this many bytes.
    File(u64),
    /// The same 13 bytes from a PHP script.
    Script,
    /// A URL that does not exist.
    Missing,
    /// A URL for a POST with a request body of this many bytes. The response comes from a handler, or is a redirect at
    /// file servers, because they have no other response to a POST.
    Post(u64),
}

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

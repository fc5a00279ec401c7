//! HTTP semantics that are independent of the HTTP version (RFC 9110).
//!
//! All functions are pure: they use no clock, no randomness and no files.

pub mod authority;
pub mod cgi_names;
pub mod conditional;
pub mod date;
pub mod escape;
pub mod etag;
pub mod fields;
pub mod forwarded;
#[doc(hidden)]
pub mod fuzzing;
pub mod link;
mod list;
pub mod media_type;
pub mod multipart;
pub mod negotiation;
pub mod range;
mod safe_name;
pub mod safe_path;
mod weight;

pub use authority::{Authority, HostKind};
pub use etag::{EntityTag, FileTag};
pub use media_type::MediaType;
pub use negotiation::{AcceptEncoding, Coding};
pub use range::{ByteRange, ContentRange, Ranges};
pub use safe_path::{PathError, SafePath};

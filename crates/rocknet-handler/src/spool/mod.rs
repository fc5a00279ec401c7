//! Receives request bodies completely before a back end is called: small bodies in memory, larger ones in an unnamed
//! file.
//!
//! ```text
//! RequestBody ─▶ writer.rs: held in memory, written by the pool ─▶ SpooledBody (body.rs): read, once or more
//!                       └─▶ store.rs: total of all requests, and its bounds
//! ```
//! All disk access happens in the blocking pool, except for reads from the page cache. A file has no name, or is
//! unlinked at once where the file system requires a name. It therefore disappears when the client aborts, a deadline
//! passes, or the process is killed.

mod body;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use self::body::SpooledBody;
pub use self::store::{Bounds, Error, Store, most_files};
pub use self::writer::SpoolWriter;

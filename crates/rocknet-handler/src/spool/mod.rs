//! The spool: request bodies that are received whole before somebody is asked, in memory as long as they are small, else in an
//! unnamed file.
//!
//! ```text
//! RequestBody ─▶ writer.rs: held in memory, written by the pool ─▶ SpooledBody (body.rs): read again, once or more often
//!                       └─▶ store.rs: what all requests hold together, and its bounds
//! ```
//! All disk access happens in the blocking pool, except for reads of pages that the kernel has in memory. A file has no name from the
//! beginning, so nothing of it is left when the client aborts, a deadline passes, or the process is killed.

mod body;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use self::body::SpooledBody;
pub use self::store::{Bounds, Error, Store, most_files};
pub use self::writer::SpoolWriter;

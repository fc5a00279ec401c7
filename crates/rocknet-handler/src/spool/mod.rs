//! The spool receives complete request bodies before a back end is called: small bodies in memory, larger ones in an
//! unnamed file.
//!
//! ```text
//! RequestBody ─▶ writer.rs: held in memory, written by the pool ─▶ SpooledBody (body.rs): read, once or more
//!                       └─▶ store.rs: total of all requests, and its bounds
//! ```
//! All disk access happens in the blocking pool, except for reads from the page cache. A file never has a name, so it
//! disappears when the client aborts, a deadline passes, or the process is killed.

mod body;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use self::body::SpooledBody;
pub use self::store::{Bounds, Error, Store, most_files};
pub use self::writer::SpoolWriter;

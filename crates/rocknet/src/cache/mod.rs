//! The cache of files: an owner thread keeps, refreshes and evicts; workers look at the disk, and keep views of their own.

pub mod entry;
pub mod front;
mod offers;
mod order;
mod owner;
mod report;
mod sight;

pub use owner::{Cache, CacheStatus, Lookup, most_open_files};
pub use sight::still_holds;

//! The cache of files: an owner thread loads, refreshes and evicts; workers keep views of their own.

pub mod entry;
pub mod front;
mod order;
mod owner;

pub use owner::{Cache, CacheStatus, Lookup, most_open_files};

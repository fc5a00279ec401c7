//! The cache of files: an owner thread loads, refreshes and evicts; workers keep views of their own.

pub mod entry;
pub mod front;
mod owner;

pub use owner::{Cache, CacheStatus, Lookup};

//! The cache of files: an owner thread keeps, refreshes and evicts; workers look at the disk, and keep views of their own.

pub mod front;
mod local;
mod offers;
mod order;
mod orders;
mod owner;
mod report;
mod sight;

pub use local::WorkerCache;
pub use owner::{Cache, CacheStatus, Lookup, most_open_files, weight};
pub use sight::still_holds;

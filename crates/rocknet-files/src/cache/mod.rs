//! The cache of files: an owner thread keeps, refreshes and evicts; workers look at the disk, and keep views of their own.

pub mod front;
mod key;
mod local;
mod message;
mod offers;
mod order;
mod orders;
mod owner;
mod report;
mod sight;
mod weight;

pub use key::Lookup;
pub use local::WorkerCache;
pub use owner::{Cache, CacheStatus, most_open_files};
pub use sight::still_holds;
pub use weight::weight;

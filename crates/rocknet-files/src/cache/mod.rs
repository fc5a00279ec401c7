//! The file cache. The cache thread stores, revalidates and evicts entries. Each worker has a small cache of its own,
//! the first level, and looks up files itself if the lookup does not block.

mod eviction;
mod eviction_queue;
mod file_cache;
mod inserts;
mod job_report;
mod key;
pub mod l1;
mod message;
mod non_blocking;
mod status;
mod thread;
mod weight;
mod worker;

pub use file_cache::{FileCache, most_open_files};
pub use key::LookupResult;
pub use non_blocking::is_unchanged;
pub use status::CacheStatus;
pub use weight::weight;
pub use worker::WorkerCache;

//! File cache. The cache thread stores, revalidates and evicts entries. Workers look up files themselves where that
//! does not block, and have a first level of their own.

mod eviction;
mod eviction_queue;
mod inserts;
mod job_report;
mod key;
pub mod l1;
mod message;
mod non_blocking;
mod thread;
mod weight;
mod worker;

pub use key::LookupResult;
pub use non_blocking::is_unchanged;
pub use thread::{CacheStatus, FileCache, most_open_files};
pub use weight::weight;
pub use worker::WorkerCache;

//! The store of responses, shared by all workers.

mod memory;

pub use memory::{MAX_VARIANTS, MemoryStore, Resource};

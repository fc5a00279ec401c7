//! Static files: a path of a site to what lies in its folder, with everything RFC 9110 lets a client ask of it.
//!
//! ```text
//! serve.rs: the handler ─▶ cache/: what is known ─▶ load.rs ─▶ resolve.rs ─▶ look.rs: a look at the disk, that waits or does not
//!                             │                        │            └── tree.rs: the folder, and how its files are served
//!                             ▼                        ▼
//!                         entry.rs with heads rendered once, answer.rs: the form that a request gets
//! ```
#![forbid(unsafe_code)]

pub mod cache;
pub mod coding;
pub mod disk_lookup;
pub mod encode;
pub mod entry;
pub mod entry_kind;
pub mod failure_log;
pub mod handler;
pub mod listing;
pub mod load;
pub mod open_folder;
pub mod representation;
pub mod resolve;
pub mod script;
pub mod shared_pages;
pub mod tree;

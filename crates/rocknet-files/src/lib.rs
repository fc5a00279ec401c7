//! Static files: a path of a site to what lies in its folder, with everything RFC 9110 lets a client ask of it.
//!
//! ```text
//! serve.rs: the handler ─▶ cache/: what is known ─▶ load.rs ─▶ resolve.rs ─▶ look.rs: a look at the disk, that waits or does not
//!                             │                        │            └── tree.rs: the folder, and how its files are served
//!                             ▼                        ▼
//!                         entry.rs with heads rendered once, answer.rs: the form that a request gets
//! ```
#![forbid(unsafe_code)]

pub mod answer;
pub mod cache;
pub mod coding;
pub mod encode;
pub mod entry;
pub mod kind;
pub mod listing;
pub mod load;
pub mod look;
pub mod missed;
pub mod open_folder;
pub mod resolve;
pub mod script;
pub mod serve;
pub mod shared_pages;
pub mod tree;

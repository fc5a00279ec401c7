//! Static files: lookup below the folder of a site, the file cache, and conditional, range and negotiated requests
//! (RFC 9110 §12 to §14).
//!
//! ```text
//! handler.rs ─▶ cache/ ─▶ load.rs ─▶ resolve.rs ─▶ disk_lookup.rs: blocking or non-blocking access to the disk
//!                 │          │            └── tree.rs: the folder, and how its files are served
//!                 ▼          ▼
//!             entry.rs with heads rendered once, representation.rs: the variant that a request gets
//! ```
#![forbid(unsafe_code)]

pub mod archive;
pub mod cache;
pub mod coding;
pub mod disk_lookup;
pub mod encode;
pub mod entry;
pub mod entry_kind;
pub mod existence;
pub mod failure_log;
mod front_controller;
pub mod handler;
pub mod listing;
pub mod load;
pub mod media_types;
pub mod open_folder;
pub mod path_access;
pub mod place;
pub mod representation;
pub mod resolve;
pub mod script;
pub mod shared_pages;
mod stepped;
pub mod tree;

//! The contract between RockNet and controllers: functions in shared libraries that answer requests. It opens no socket
//! and knows nothing of the server: both sides of the contract depend on it, and it on nobody.
//!
//! `include/rocknet_controller.h` is the contract itself, for C and everything that speaks C; [`abi`] says the same for
//! Rust, and the rest makes it safe to use from there:
//!
//! ```standalone_crate
//! use rocknet_controller::{Outcome, Request, export};
//!
//! fn hello(_: &(), request: &mut Request<'_>) -> Outcome {
//!     request.set_status(200)?;
//!     request.add_field("Content-Type", "text/plain")?;
//!     Ok(request.write(b"Hello, world!")?)
//! }
//!
//! export! { (); "hello" => hello }
//! # fn main() {}
//! ```
//!
//! Built as a `cdylib`, this answers where the configuration says `controller = "libhello.so:hello"`.

#![allow(unsafe_code)] // every call over the boundary to C is

pub mod abi;
mod export;
#[cfg(feature = "host")]
pub mod host;
mod request;

pub use export::{Controller, Library, LibraryTable, SimpleController, c_name, simple_entry, streaming_entry};
pub use request::{Level, Log, Refused, Request};

/// How a controller ends: an error is logged, and the answer becomes 500, or is cut where it has begun.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

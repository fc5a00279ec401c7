//! Contract between RockNet and controllers, which are functions in shared libraries that respond to requests.
//!
//! The contract itself is `include/rocknet_controller.h`, for C and every language that can export C functions. [`abi`]
//! has the same declarations in Rust, and the other items are a safe interface to them. The crate opens no socket and
//! does not depend on the server; the server uses it with the feature `host`.
//!
//! A controller is a function, or a type that implements [`Controller`] if the request body or the response body is too
//! large for memory. [`export!`] makes a library of its arguments. The first argument is the type of the state that all
//! controllers of the library share ([`Library`]). The following library has no state, so the type is `()`, and each
//! controller gets an unused `&()`:
//!
//! ```standalone_crate
//! use rocknet_controller::{Controller, Outcome, Request, export};
//!
//! /// Responds with a greeting.
//! fn hello(_: &(), request: &mut Request<'_>) -> Outcome {
//!     let name = request.query().unwrap_or(b"world");
//!     request.set_status(200)?;
//!     request.add_field("Content-Type", "text/plain; charset=utf-8")?;
//!     request.write(b"Hello, ")?;
//!     Ok(request.write(name)?)
//! }
//!
//! /// Counts the bytes of a request body of any size.
//! struct Count(u64);
//!
//! impl Controller<()> for Count {
//!     const TAKES: bool = true;
//!     const GIVES: bool = false;
//!
//!     fn begin(_: &(), request: &mut Request<'_>) -> Outcome<Count> {
//!         request.set_status(200)?;
//!         Ok(Count(0))
//!     }
//!
//!     fn take(&mut self, _: &(), request: &mut Request<'_>, piece: Option<&[u8]>) -> Outcome {
//!         match piece {
//!             Some(piece) => self.0 += piece.len() as u64,
//!             None => request.write(self.0.to_string().as_bytes())?,
//!         }
//!         Ok(())
//!     }
//! }
//!
//! export! {
//!     ();
//!     "hello" => hello,
//!     "count" => type Count,
//! }
//! # fn main() {}
//! ```
//!
//! Built as a `cdylib`, this library serves a route with `controller = "libhello.so:hello"`.

#![deny(missing_docs)]
#![allow(unsafe_code)] // for the calls across the C ABI

pub mod abi;
mod export;
#[cfg(feature = "host")]
pub mod host;
mod request;

pub use export::{Controller, Library, LibraryTable, SimpleController, c_name, simple_entry, streaming_entry};
pub use request::{Level, Log, Refused, Request};

/// Result of a controller. An error is logged. The response becomes 500, or is aborted if it has begun.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

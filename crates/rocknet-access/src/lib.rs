//! Access control of sites and routes by client address, user and password.
//!
//! An [`Access`] decides for one route, in this order: addresses, throttle, verified credentials. Verifying a new
//! password occupies a core for a few milliseconds up to about a second. [`Access::check`] therefore returns a
//! [`Pending`] for the verification, which the caller runs in its blocking pool.
//!
//! The crate starts no thread, opens no socket and reads no clock: times are arguments, in milliseconds of a monotonic
//! clock. Verified credentials and attempts are stored in a [`State`], which all routes of a server share.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod attempts;
pub mod credentials;
#[doc(hidden)]
pub mod fuzzing;
pub mod password;
pub mod verified;

mod access;
mod apr1;
mod crypt_base64;
mod fingerprint;
mod state;
mod users;

pub use access::{Access, AccessError, Check, Decision, Pending};
pub use addresses::Client;
pub use state::State;

//! Access control of sites and routes: which clients may enter, and who they are.
//!
//! An [`Access`] decides for one route, in the order addresses, throttle, verified credentials. A password that was not
//! verified before takes tens of milliseconds of a core, so [`Access::check`] returns a [`Pending`] for it, and the caller
//! runs that in its blocking pool. The crate starts no thread, opens no socket and reads no clock: times are arguments, in
//! milliseconds from any fixed point. What it remembers is in a [`State`], which the routes of a server share.
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

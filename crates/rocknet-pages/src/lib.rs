//! The pages RockNet writes itself: errors, directory listings and the welcome of a fresh install.
//!
//! Pure functions: HTML or JSON out, no I/O, no clock. Each page stands alone: style inside, no script, no request to
//! anywhere, so that it also works on a machine without a network and under the strictest policy.
#![forbid(unsafe_code)]

pub mod error;
pub mod listing;
mod text;
pub mod unknown_site;
pub mod welcome;

/// `Content-Security-Policy` under which every page here works, and an injected script would not.
///
/// `data:` images are the empty or drawn icons that spare the server a request for `/favicon.ico`.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// `Content-Type` of every page here.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

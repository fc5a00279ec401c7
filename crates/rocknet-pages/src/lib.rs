//! The pages that RockNet generates: errors, directory listings, and the welcome page of a new installation.
//!
//! Pure functions that return HTML or JSON, without I/O or a clock. Each page is self-contained, with inline styles and
//! no scripts, and causes no further requests. It therefore works without a network and under the strictest content
//! security policy.
#![forbid(unsafe_code)]

pub mod error;
pub mod listing;
mod text;
pub mod unknown_site;
pub mod welcome;

/// `Content-Security-Policy` of every page here, which blocks injected scripts.
///
/// `data:` images are inline icons that save a request for `/favicon.ico`.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// `Content-Type` of every page here.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

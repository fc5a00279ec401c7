//! Pages that RockNet generates: error pages, directory listings (also as JSON), and the welcome page of a new
//! installation.
//!
//! The functions are pure: they return HTML or JSON without I/O or a clock. Each page is self-contained, with inline
//! styles and without scripts, and causes no further requests. It therefore works without a network and under a strict
//! content security policy. Listings are the exception: they have one small script, which they do not need, and may
//! show pictures of their folder.
#![forbid(unsafe_code)]

pub mod error;
pub mod listing;
mod text;
pub mod unknown_site;
pub mod welcome;

/// `Content-Security-Policy` for the responses of this crate, except HTML listings, which need
/// [`listing::CONTENT_SECURITY_POLICY`]. It blocks injected scripts.
///
/// It permits `data:` images, because inline icons save a request for `/favicon.ico`.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// `Content-Type` of the HTML pages of this crate.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

//! Server side of each HTTP version: connections of HTTP/1.0 and HTTP/1.1, HTTP/2, and HTTP/3.

pub mod h1;
pub mod h2;
pub mod h3;

pub use h3::remembered_settings;

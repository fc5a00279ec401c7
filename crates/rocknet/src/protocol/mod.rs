//! Server side of each HTTP version: HTTP/1.1, HTTP/2 and HTTP/3 connections.

pub mod h1;
pub mod h2;
pub mod h3;

pub use h3::remembered_settings;

//! Server side of each HTTP version: HTTP/1.1 and HTTP/2 connections.

pub mod h1;
pub mod h2;

//! The handlers. Each has a file or folder here, implements [`Handler`], and is registered in `handlers.rs`.

pub mod application;
pub mod cgi;
pub mod controller;
pub mod files;
pub(crate) mod gateway;
pub mod nothing;
pub mod php;
pub mod proxy;
pub mod welcome;

pub use rocknet_handler::{Answer, Answering, Handler, OnTheSpot, answer_with, exhausted};

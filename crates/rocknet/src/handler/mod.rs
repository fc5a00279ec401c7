//! The handlers. Each has a file or folder here, implements [`Handler`], and is registered in `handlers.rs`.

pub mod controller;
pub mod not_found;
pub mod welcome;

pub use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput, respond_with};

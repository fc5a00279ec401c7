//! The handlers that have no crate of their own. Each implements [`Handler`] in its own file or folder and is
//! registered in `handlers.rs`.

pub mod controller;
pub mod not_found;
pub mod welcome;

pub use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput, respond_with};

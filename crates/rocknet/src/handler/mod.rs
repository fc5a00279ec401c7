//! Handlers make answers. Each has a file or folder here; all enter by the same door.

pub mod application;
pub mod cgi;
pub mod controller;
mod exhausted;
pub mod files;
pub mod fixed;
pub(crate) mod gateway;
pub mod php;
pub mod proxy;

use std::future::Future;
use std::pin::Pin;

use crate::exchange::Exchange;
use crate::response::Response;

/// An answer still being made, on the worker's thread.
pub type Answering = Pin<Box<dyn Future<Output = Response>>>;

/// Makes answers out of requests.
pub trait Handler: Send + Sync {
    fn answer(&self, exchange: Exchange) -> Answering;
}

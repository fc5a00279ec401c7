//! Limits of connections and requests, as meant.

use std::time::Duration;

use super::with_defaults::with_defaults;

with_defaults! {
    /// Bounds on what one client may use; each has a status or a close of its own.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Limits {
        /// From the first byte of a request (or the accept) to the end of its header section: 408 or close.
        pub header_timeout: Duration = Duration::from_secs(10),
        /// Request line and header section together, in bytes: 431.
        pub header_size: usize = 16 * 1024,
        /// Header fields in one request: 431.
        pub header_fields: usize = 100,
        /// Request target, in bytes: 414.
        pub target_size: usize = 8 * 1024,
        /// Request content, in bytes: 413. Sites and routes may have their own.
        pub body_size: u64 = 100 * 1024 * 1024,
        /// Body of one request that is held in memory while it is received whole, in bytes. Sites and routes may have
        /// their own.
        pub body_memory: u64 = 64 * 1024,
        /// Longest pause within a request body: 408.
        pub body_idle: Duration = Duration::from_secs(30),
        /// Slowest average rate of request content, in bytes a second: 408.
        pub body_rate: u64 = 500,
        /// Longest time without the client taking a byte of the answer: close.
        pub send_stall: Duration = Duration::from_secs(60),
        /// Longest wait for a response of a handler, or for its next piece: 503, or a cut. Sites and routes may have
        /// their own.
        pub answer_timeout: Duration = Duration::from_secs(60),
        /// Longest time between two requests on a connection.
        pub keep_alive: Duration = Duration::from_secs(65),
        /// Longest life of a connection; after it the next answer says close.
        pub connection_age: Duration = Duration::from_secs(3600),
        /// Connections open at once in the whole server; `None`: as many as descriptors allow.
        pub connections: Option<usize> = None,
        /// Longest time that answers in flight get to finish when the server stops.
        pub shutdown: Duration = Duration::from_secs(10),
    }
}

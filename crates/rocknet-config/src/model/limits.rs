//! Limits of connections and requests.

use std::time::Duration;

use super::with_defaults::with_defaults;

with_defaults! {
    /// Bounds on the resources that one client may use. A client that exceeds one gets an error status, or its
    /// connection is closed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Limits {
        /// Timeout from the first byte of a request, or from the accept, to the end of its header section. Then 408, or
        /// the connection is closed.
        pub header_timeout: Duration = Duration::from_secs(10),
        /// Maximum size of request line and header section together, in bytes. Then 431.
        pub header_size: usize = 16 * 1024,
        /// Maximum number of header fields in one request. Then 431.
        pub header_fields: usize = 100,
        /// Maximum size of the request target, in bytes. Then 414.
        pub target_size: usize = 8 * 1024,
        /// Maximum size of a request body, in bytes. Then 413. Sites and routes may override it.
        pub body_size: u64 = 100 * 1024 * 1024,
        /// Part of a buffered request body that is held in memory, in bytes; a larger body goes to disk. Sites and
        /// routes may override it.
        pub body_memory: u64 = 64 * 1024,
        /// Timeout for the next bytes of a request body. Then 408.
        pub body_idle: Duration = Duration::from_secs(30),
        /// Minimum average rate of a request body, in bytes per second. Then 408.
        pub body_rate: u64 = 500,
        /// Timeout for the client to accept a byte of the response. Then the connection is closed.
        pub send_stall: Duration = Duration::from_secs(60),
        /// Timeout for a handler to produce a response, or its next part. Then 503, or the response is cut off. Sites
        /// and routes may override it.
        pub answer_timeout: Duration = Duration::from_secs(60),
        /// Timeout for the next request on a connection.
        pub keep_alive: Duration = Duration::from_secs(65),
        /// Maximum age of a connection; it is closed after the next response.
        pub connection_age: Duration = Duration::from_secs(3600),
        /// Maximum number of open connections in the whole server; `None`: as many as file descriptors allow.
        pub connections: Option<usize> = None,
        /// Time that exchanges in flight get to finish when the server stops.
        pub shutdown: Duration = Duration::from_secs(10),
    }
}

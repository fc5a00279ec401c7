//! Limits of connections and requests.

use std::time::Duration;

use super::with_defaults::with_defaults;

/// Maximum of [`Limits::shutdown`].
pub const MAX_SHUTDOWN: Duration = Duration::from_secs(3600);

with_defaults! {
    /// Limits of connections and requests. A client that exceeds a limit gets the error status that the limit names, or
    /// its connection is closed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Limits {
        /// Timeout for receiving the head of a request. It starts with the first byte of the head; for the first
        /// request, it starts with the connection. After it, a client of HTTP/1 gets 408, or its connection is closed
        /// if nothing was received. Over HTTP/2 the connection is closed with GOAWAY, and over HTTP/3 the stream of
        /// the request is reset.
        pub header_timeout: Duration = Duration::from_secs(10),
        /// Maximum size of a request head, in bytes. A larger one gets 431.
        pub header_size: usize = 16 * 1024,
        /// Maximum number of header fields in one request. A request with more gets 431.
        pub header_fields: usize = 100,
        /// Maximum size of the request target, in bytes. A larger one gets 414.
        pub target_size: usize = 8 * 1024,
        /// Maximum size of a request body, in bytes. A larger one gets 413. Sites and routes may override it.
        pub body_size: u64 = 100 * 1024 * 1024,
        /// Maximum size of a buffered request body that is held in memory, in bytes; a larger body goes to disk. Sites
        /// and routes may override it.
        pub body_memory: u64 = 64 * 1024,
        /// Timeout for the next bytes of a request body. After it, the client gets 408.
        pub body_idle: Duration = Duration::from_secs(30),
        /// Minimum average rate of a request body over periods of `body_idle`, in bytes per second; 0: no minimum. A
        /// slower client gets 408.
        pub body_rate: u64 = 500,
        /// Timeout for the client to accept a byte of the response. It is also the period over which the client must
        /// accept at least `body_rate` on average. Otherwise the connection is closed.
        pub send_stall: Duration = Duration::from_secs(60),
        /// Timeout for a handler to produce a response, or its next part. After it, the client gets 503, or 504 if PHP,
        /// a CGI program or an application did not respond; a response that has begun is cut off. Proxies wait for a
        /// response for their own `first_byte` instead. Sites and routes may override it.
        pub answer_timeout: Duration = Duration::from_secs(60),
        /// Timeout for the next request on a connection. After it, the connection is closed. Zero: the connection is
        /// closed after each response.
        pub keep_alive: Duration = Duration::from_secs(65),
        /// Maximum age of a connection. An older one is closed after its next response.
        pub connection_age: Duration = Duration::from_secs(3600),
        /// Maximum number of open connections in the whole server; `None`: as many as file descriptors allow.
        pub connections: Option<usize> = None,
        /// Time that exchanges in flight get to finish when the server stops.
        pub shutdown: Duration = Duration::from_secs(10),
        /// Time that the connections of the old process get to finish after an upgrade. It also applies to the
        /// connections of an address or a worker that a reload has removed.
        pub upgrade_drain: Duration = Duration::from_secs(3600),
    }
}

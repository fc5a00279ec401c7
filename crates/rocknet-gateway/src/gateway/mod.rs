//! What handlers share that have an application answer: PHP, FastCGI, SCGI, uwsgi, and programs of CGI.
//!
//! ```text
//! Exchange ─▶ request.rs: its body, received ─▶ variables.rs ─▶ exchange.rs ⇄ socket.rs    one of backend.rs, kept open or new,
//!                                                              │                         or a program
//!                                            Response ◀─ response.rs: status and fields, and the content as it comes
//! ```

pub mod backend;
mod backends;
pub mod cgi_program;
pub mod error;
pub mod exchange;
pub mod request;
pub mod response;
pub mod socket;
pub mod stderr;
pub mod variables;

pub use self::backends::Backends;

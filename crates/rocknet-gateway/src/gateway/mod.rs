//! Parts shared by the handlers of PHP, FastCGI, SCGI, uwsgi and CGI.
//!
//! ```text
//! Exchange ─▶ request.rs: receives the body ─▶ variables.rs ─▶ exchange.rs ⇄ socket.rs: a connection of backend.rs,
//!                                                                 │                    idle or new, or a CGI program
//!                        Response ◀─ response.rs: status, fields and the body as it arrives
//! ```

pub mod backend;
mod backends;
pub mod cgi_program;
pub mod error;
pub mod exchange;
pub mod program_end;
pub mod request;
pub mod response;
pub mod socket;
pub mod stderr;
pub mod variables;

pub use self::backends::Backends;

//! What handlers share that have an application answer: PHP, FastCGI, SCGI, uwsgi, and programs of CGI.
//!
//! ```text
//! Exchange ─▶ request.rs: its body, received ─▶ variables.rs ─▶ conversation.rs ⇄ socket.rs    one of backend.rs, kept open or new,
//!                                                              │                         or a program
//!                                            Response ◀─ answer.rs: status and fields, and the content as it comes
//! ```

pub mod answer;
pub mod backend;
mod backends;
pub mod complaints;
pub mod conversation;
pub mod program;
pub mod request;
pub mod socket;
pub mod trouble;
pub mod variables;

pub use self::backends::Backends;

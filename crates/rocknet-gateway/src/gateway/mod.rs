//! What handlers share that have an application answer: PHP, FastCGI, SCGI, uwsgi, and programs of CGI.
//!
//! ```text
//! Exchange ─▶ its body, received whole ─▶ variables.rs ─▶ conversation.rs ⇄ socket.rs    one of backend.rs, kept open or new,
//!                                                              │                         or a program
//!                                            Response ◀─ answer.rs: status and fields, and the content as it comes
//! ```

pub mod answer;
pub mod backend;
mod backends;
pub mod complaints;
pub mod conversation;
pub mod program;
pub mod socket;
pub mod trouble;
pub mod variables;

pub use self::backends::Backends;

use self::trouble::Trouble;
use rocknet_handler::exchange::RequestContent;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::spool::Spool;

/// Receives the whole request body and returns its length, `None` if there is no body. So a slow client never holds a process of an
/// application, and every application knows the length before the first byte.
pub async fn receive(
    services: &Services,
    route: &Route,
    mut content: RequestContent,
) -> Result<(RequestContent, Option<u64>), Trouble> {
    if content.is_empty() {
        return Ok((content, None));
    }
    let bounds = route.server.spool.clone();
    let spool = Spool::new(&services.spool, bounds, route.body_memory, route.priority);
    // In a box: most requests have no content, and it would make the future of each larger.
    let length = Box::pin(content.spool(spool)).await.map_err(Trouble::Content)?;
    Ok((content, Some(length)))
}

//! What handlers share that have an application answer: PHP, FastCGI, SCGI, uwsgi, and programs of CGI.
//!
//! ```text
//! Exchange ─▶ variables.rs ─▶ conversation.rs ⇄ socket.rs    one of backend.rs, kept open or new, or a program
//!                                   │
//!                 Response ◀─ answer.rs: status and fields, and the content as it comes
//! ```

pub mod answer;
pub mod backend;
pub mod complaints;
pub mod conversation;
pub mod socket;
pub mod trouble;
pub mod variables;

use rocknet_proto::fields::Known;
use rocknet_proto::request::Request;

use self::conversation::Source;
use self::trouble::Trouble;
use crate::exchange::RequestContent;

/// Content that comes in chunks is collected before it is passed on: applications want to know its length first. So much of
/// it is taken, a form but no upload, because all of it is held.
const MAX_UNMEASURED: usize = 64 * 1024;

/// What of the site an application and its troubles have to do with.
pub struct Around {
    pub site: Box<str>,
    /// Whether error pages may say what the operator has to do.
    pub dev: bool,
}

/// Where content comes from, and its length where no field tells that.
pub async fn source(request: &Request<'_>, mut content: RequestContent) -> Result<(Source, Option<usize>), Trouble> {
    if request.fields.get(Known::ContentLength).is_some() {
        return Ok((Source::Client(content), None));
    }
    let content = collect(&mut content).await?;
    let length = (!content.is_empty()).then_some(content.len());
    Ok((Source::Here(content), length))
}

async fn collect(content: &mut RequestContent) -> Result<Vec<u8>, Trouble> {
    let mut all = Vec::new();
    while let Some(chunk) = content.chunk().await.map_err(Trouble::Content)? {
        if all.len() + chunk.len() > MAX_UNMEASURED {
            return Err(Trouble::Unmeasured);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

//! What has come of an answer, and the reading of it: strict, within bounds, and told to nobody before it is asked for.

use std::rc::Rc;

use rocknet_proto::h1::{Answered, ClientConnection, Fault, ResponseContent};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;

use crate::head::ResponseHead;
use crate::trailers;
use crate::upgrade_request::UpgradeRequest;
use rocknet_handler::interim::InterimResponse;
use rocknet_handler::response::FieldList;

#[derive(Default)]
pub struct ResponseReader {
    pub head: Option<ResponseHead>,
    /// Content that nobody has taken.
    pub pending: Vec<u8>,
    /// What nobody has been told yet.
    pub interim: Option<Box<InterimResponse>>,
    pub upgrade: Option<Rc<UpgradeRequest>>,
    /// Fields behind the content. Boxed, as what follows is: few answers have any, and all are moved.
    pub trailers: Option<Box<FieldList>>,
    /// The protocol that the upstream has gone over to.
    pub upgraded_protocol: Option<Box<[u8]>>,
    pub is_complete: bool,
}

/// Bytes of an answer's head, and its fields: twice what clients may say, because cookies are set with all they hold.
const LIMITS: Limits = Limits {
    head_size: 32 * 1024,
    fields: 200,
    target_size: 0,
    trailer_size: 8 * 1024,
    chunk_extension: 4 * 1024,
    content_size: 0,
};

impl ResponseReader {
    /// Reads what there is, and tells how much of it is understood.
    pub fn read(
        &mut self,
        engine: &mut ClientConnection,
        bytes: &[u8],
        index: &mut ResponseIndex,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match engine.receive(&LIMITS, rest, index)? {
                Answered::More { consumed } => return Ok(at + consumed),
                Answered::Interim { consumed } => {
                    let head = ResponseHead::new(&index.view(rest), ResponseContent::None, None);
                    InterimResponse::merge(&mut self.interim, index.status, head.into_fields());
                    at += consumed;
                }
                Answered::Response { consumed, content } => {
                    self.head = Some(ResponseHead::new(&index.view(rest), content, None));
                    at += consumed;
                    if content == ResponseContent::None {
                        self.is_complete = true;
                        return Ok(at);
                    }
                }
                Answered::Data { start, end } => {
                    self.pending.extend_from_slice(&rest[start..end]);
                    at += end;
                }
                Answered::End { consumed } => {
                    if !index.trailers.is_empty() {
                        let received = FieldList::copied(index.trailers.view(rest).lines());
                        let passed = Some(trailers::for_response(&received)).filter(|fields| !fields.is_empty());
                        self.trailers = passed.map(Box::new);
                    }
                    self.is_complete = true;
                    return Ok(at + consumed);
                }
                Answered::Switched { consumed } => {
                    let response = index.view(rest);
                    let upgrade = self.upgrade.as_deref();
                    let accepted = upgrade.and_then(|upgrade| upgrade.accepted_protocol(response.fields));
                    self.upgraded_protocol = Some(accepted.ok_or(Fault::UnaskedUpgrade)?.into());
                    self.head = Some(ResponseHead::new(&response, ResponseContent::None, upgrade));
                    return Ok(at + consumed);
                }
                Answered::Blocked => return Ok(at),
            }
        }
    }
}

//! Reader of an HTTP/1.1 response: parses it within limits and stores its parts until the exchange takes them.

use std::rc::Rc;

use rocknet_proto::h1::{ClientConnection, ClientEvent, ResponseBodyFraming, ResponseError};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;

use crate::head::ResponseHead;
use crate::trailers;
use crate::upgrade_request::UpgradeRequest;
use rocknet_handler::interim::InterimResponse;
use rocknet_handler::response::FieldList;

/// State of a response that is being received.
#[derive(Default)]
pub struct ResponseReader {
    /// Head of the response; `None` before it has arrived and after it was taken.
    pub head: Option<ResponseHead>,
    /// Received bytes of the response body that were not taken yet.
    pub pending: Vec<u8>,
    /// Interim responses that are not forwarded yet, merged into one.
    pub interim: Option<Box<InterimResponse>>,
    /// Protocol switch that the request offers, if any.
    pub upgrade: Option<Rc<UpgradeRequest>>,
    /// Trailer fields. Boxed, like the next field, because few responses have them and a small `ResponseReader` is
    /// cheaper to move.
    pub trailers: Option<Box<FieldList>>,
    /// Protocol that the upstream switched to, if it did.
    pub upgraded_protocol: Option<Box<[u8]>>,
    /// True if the response has been received completely.
    pub is_complete: bool,
}

/// Limits of a response; sizes are in bytes. The head may have twice the size and twice the fields of a request head,
/// because `Set-Cookie` contains attributes besides the cookie. `target_size` and `body_size` do not apply to
/// responses.
const LIMITS: Limits = Limits {
    head_size: 32 * 1024,
    fields: 200,
    target_size: 0,
    trailer_size: 8 * 1024,
    chunk_extension: 4 * 1024,
    body_size: 0,
};

impl ResponseReader {
    /// Parses `bytes` and returns the number of consumed bytes.
    pub fn read(
        &mut self,
        engine: &mut ClientConnection,
        bytes: &[u8],
        index: &mut ResponseIndex,
    ) -> Result<usize, ResponseError> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match engine.receive(&LIMITS, rest, index)? {
                ClientEvent::More { consumed } => return Ok(at + consumed),
                ClientEvent::Interim { consumed } => {
                    let head = ResponseHead::new(&index.view(rest), ResponseBodyFraming::None, None);
                    InterimResponse::merge(&mut self.interim, index.status, head.into_fields());
                    at += consumed;
                }
                ClientEvent::Response {
                    consumed,
                    body: framing,
                } => {
                    self.head = Some(ResponseHead::new(&index.view(rest), framing, None));
                    at += consumed;
                    if framing == ResponseBodyFraming::None {
                        self.is_complete = true;
                        return Ok(at);
                    }
                }
                ClientEvent::Data { start, end } => {
                    self.pending.extend_from_slice(&rest[start..end]);
                    at += end;
                }
                ClientEvent::End { consumed } => {
                    if !index.trailers.is_empty() {
                        let received = FieldList::from_fields(index.trailers.view(rest).lines());
                        let passed = Some(trailers::for_response(&received)).filter(|fields| !fields.is_empty());
                        self.trailers = passed.map(Box::new);
                    }
                    self.is_complete = true;
                    return Ok(at + consumed);
                }
                ClientEvent::Switched { consumed } => {
                    let response = index.view(rest);
                    let upgrade = self.upgrade.as_deref();
                    let accepted = upgrade.and_then(|upgrade| upgrade.accepted_protocol(response.fields));
                    self.upgraded_protocol = Some(accepted.ok_or(ResponseError::UnsolicitedUpgrade)?.into());
                    self.head = Some(ResponseHead::new(&response, ResponseBodyFraming::None, upgrade));
                    return Ok(at + consumed);
                }
                ClientEvent::Blocked => return Ok(at),
            }
        }
    }
}

//! What has come of an answer, and the reading of it: strict, within bounds, and told to nobody before it is asked for.

use std::rc::Rc;

use rocknet_proto::h1::{ClientConnection, ClientEvent, ResponseBodyFraming, ResponseError};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;

use crate::head::Head;
use crate::trailers;
use crate::wish::Wish;
use rocknet_handler::interim::InterimResponse;
use rocknet_handler::response::FieldList;

#[derive(Default)]
pub struct Incoming {
    pub head: Option<Head>,
    /// Content that nobody has taken.
    pub pending: Vec<u8>,
    /// What nobody has been told yet.
    pub early: Option<Box<InterimResponse>>,
    pub wish: Option<Rc<Wish>>,
    /// Fields behind the content. Boxed, as what follows is: few answers have any, and all are moved.
    pub trailers: Option<Box<FieldList>>,
    /// The protocol that the upstream has gone over to.
    pub switched: Option<Box<[u8]>>,
    pub is_over: bool,
}

/// Bytes of an answer's head, and its fields: twice what clients may say, because cookies are set with all they hold.
const LIMITS: Limits = Limits {
    head_size: 32 * 1024,
    fields: 200,
    target_size: 0,
    trailer_size: 8 * 1024,
    chunk_extension: 4 * 1024,
    body_size: 0,
};

impl Incoming {
    /// Reads what there is, and tells how much of it is understood.
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
                    let head = Head::new(&index.view(rest), ResponseBodyFraming::None, None);
                    InterimResponse::merge(&mut self.early, index.status, head.into_fields());
                    at += consumed;
                }
                ClientEvent::Response {
                    consumed,
                    body: content,
                } => {
                    self.head = Some(Head::new(&index.view(rest), content, None));
                    at += consumed;
                    if content == ResponseBodyFraming::None {
                        self.is_over = true;
                        return Ok(at);
                    }
                }
                ClientEvent::Data { start, end } => {
                    self.pending.extend_from_slice(&rest[start..end]);
                    at += end;
                }
                ClientEvent::End { consumed } => {
                    if !index.trailers.is_empty() {
                        let came = FieldList::from_fields(index.trailers.view(rest).lines());
                        let passed = Some(trailers::of_answer(&came)).filter(|fields| !fields.is_empty());
                        self.trailers = passed.map(Box::new);
                    }
                    self.is_over = true;
                    return Ok(at + consumed);
                }
                ClientEvent::Switched { consumed } => {
                    let response = index.view(rest);
                    let wish = self.wish.as_deref();
                    let agreed = wish.and_then(|wish| wish.agreed(response.fields));
                    self.switched = Some(agreed.ok_or(ResponseError::UnsolicitedUpgrade)?.into());
                    self.head = Some(Head::new(&response, ResponseBodyFraming::None, wish));
                    return Ok(at + consumed);
                }
                ClientEvent::Blocked => return Ok(at),
            }
        }
    }
}

//! Server-push state of one connection: pushed, promised and announced targets, and their limits.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::fields::KnownField;
use rocknet_proto::h2::{PushRequest, ServerConnection, StreamId};
use rocknet_proto::request::{OwnedRequest, Request, Version};
use rocknet_proto::status::Status;

use crate::lifecycle::seen_targets::SeenTargets;
use crate::preload::{self, Preloads};
use crate::response::FieldList;

/// Maximum number of promises for each connection: several pages with all their resources. After that, most resources
/// are in the client's cache.
const PROMISES_MAX: u32 = 128;

/// Maximum size of a pushed file in bytes: half a second at 8 Mbit/s. The client requests larger files itself if it
/// needs them.
const PUSHED_FILE_MAX: u64 = 512 * 1024;

/// Maximum number of bytes pushed on one connection, because the client may already have many of the files.
const PUSHED_BYTES_MAX: u64 = 4 << 20;

/// Fields by which access control and handlers identify the sender of a request and its connection. The server copies
/// them from the request of the page to the promised request. The PUSH_PROMISE frame does not contain them, because
/// only the server uses them.
const SENDER_FIELDS: [KnownField; 5] = [
    KnownField::Authorization,
    KnownField::Forwarded,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
];

/// Promised stream, with its request.
pub struct PromisedStream {
    pub id: StreamId,
    pub request: Rc<OwnedRequest>,
}

/// Page whose response is pending, with the files that may be pushed with it.
pub struct PendingPage {
    pub request: Rc<OwnedRequest>,
    pub preloads: Option<Arc<Preloads>>,
}

/// Server-push state of one connection; empty until the first page with resources.
#[derive(Default)]
pub struct PushState(Option<Box<Pushes>>);

/// Server-push state from the first page with resources on.
struct Pushes {
    /// Targets that are not promised or announced again.
    seen: SeenTargets,
    /// Number of promises so far.
    promises: u32,
    /// Bytes of the pushed files so far.
    bytes: u64,
}

impl PushState {
    /// Remembers a target that the client has requested. Nothing is stored before the first page with resources.
    #[inline]
    pub fn record_request(&mut self, request: &Request<'_>) {
        if let Some(pushes) = &mut self.0 {
            // `is_new` also adds the target. The result does not matter here.
            pushes.seen.is_new(request.authority, request.target);
        }
    }

    /// Promises the `targets` that the client has not seen, until a limit is reached or the client accepts no more
    /// pushes. `page`, `request`: stream and request of the page. Adds the promised streams to `promised`, and the
    /// PUSH_PROMISE frames to `out`.
    pub fn promise<'t>(
        &mut self,
        engine: &mut ServerConnection,
        page: StreamId,
        request: &Request<'_>,
        scheme: &[u8],
        targets: impl Iterator<Item = &'t [u8]>,
        promised: &mut Vec<PromisedStream>,
        out: &mut Vec<u8>,
    ) {
        let pushes = self.pushes(request);
        // Unless the field is repeated, the promise contains the client's `Accept-Encoding`, which is the same in all
        // its requests.
        let encodings = request.fields.get(KnownField::AcceptEncoding);
        let encodings = encodings.filter(|_| !request.fields.is_repeated(KnownField::AcceptEncoding));
        let fields: Option<(KnownField, &[u8])> = encodings.map(|value| (KnownField::AcceptEncoding, value));
        // The sender's fields are kept, so that access to a pushed file is checked like a request of the same client.
        let sender = SENDER_FIELDS
            .iter()
            .flat_map(|name| request.fields.get_all(*name).map(|value| (*name, value)));
        let request_fields: Vec<(KnownField, &[u8])> = fields.into_iter().chain(sender).collect();
        for target in targets {
            if !engine.may_push(page) || pushes.promises >= PROMISES_MAX || pushes.bytes >= PUSHED_BYTES_MAX {
                return;
            }
            if !pushes.seen.is_new(request.authority, target) {
                continue;
            }
            let push = PushRequest {
                scheme,
                authority: request.authority,
                path: target,
            };
            let written = fields.iter().map(|(name, value)| (name.as_str().as_bytes(), *value));
            match engine.push_promise(page, &push, written, out) {
                Ok(id) => {
                    pushes.promises += 1;
                    let promised_request =
                        OwnedRequest::synthetic_get(Version::Http2, request.authority, target, &request_fields);
                    promised.push(PromisedStream {
                        id,
                        request: Rc::new(promised_request),
                    });
                }
                Err(error) => tracing::debug!("not pushed: {error}"),
            }
        }
    }

    /// Promises the files that the configuration and the Link fields of a handler's response name. `id`: stream of
    /// the page. `fields`: fields of the response.
    pub fn promise_for_response(
        &mut self,
        engine: &mut ServerConnection,
        page: &PendingPage,
        id: StreamId,
        scheme: &[u8],
        fields: &FieldList,
        promised: &mut Vec<PromisedStream>,
        out: &mut Vec<u8>,
    ) {
        if page.preloads.is_none() && preload::link_targets(fields).next().is_none() {
            return;
        }
        let configured = page.preloads.iter().flat_map(|preloads| &preloads.targets);
        let targets = configured.map(|target| &**target).chain(preload::link_targets(fields));
        self.promise(engine, id, &page.request.view(), scheme, targets, promised, out);
    }

    /// Sends 103 (Early Hints) with the preloads, if any of them is new to the client.
    pub fn send_early_hints(
        &mut self,
        engine: &mut ServerConnection,
        page: StreamId,
        request: &Request<'_>,
        preloads: &Preloads,
        out: &mut Vec<u8>,
    ) {
        if self.pushes(request).seen.has_new(request.authority, preloads) {
            let link = (&b"link"[..], preloads.link.as_bytes());
            // An error means that the stream is gone and needs no hint.
            let _ = engine.send_interim(page, Status::EARLY_HINTS, [link], out);
        }
    }

    /// Returns true if a response may be sent on a promised stream, and counts its bytes. Only a response with status
    /// 200 whose length is known and within the limits may be sent.
    pub fn reserve(&mut self, status: Status, length: Option<u64>) -> bool {
        let Some(pushes) = &mut self.0 else { return false };
        match length {
            Some(length)
                if status == Status::OK && length <= PUSHED_FILE_MAX && pushes.bytes + length <= PUSHED_BYTES_MAX =>
            {
                pushes.bytes += length;
                true
            }
            _ => false,
        }
    }

    /// Returns the state, which the first page with resources creates.
    fn pushes(&mut self, page: &Request<'_>) -> &mut Pushes {
        self.0.get_or_insert_with(|| {
            Box::new(Pushes {
                seen: SeenTargets::of_page(page),
                promises: 0,
                bytes: 0,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> OwnedRequest {
        OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &[])
    }

    #[test]
    fn targets_requested_before_the_first_page_are_not_stored() {
        let (mut pushes, page) = (PushState::default(), page());
        let other = OwnedRequest::synthetic_get(Version::Http2, b"h", b"/a", &[]);
        pushes.record_request(&other.view());
        let seen = &mut pushes.pushes(&page.view()).seen;
        assert!(seen.is_new(b"h", b"/a"));
        assert!(!seen.is_new(b"h", b"/"), "the page itself is stored");
    }

    #[test]
    fn the_size_of_a_pushed_file_and_the_pushed_bytes_of_a_connection_are_limited() {
        let (mut pushes, page) = (PushState::default(), page());
        assert!(!pushes.reserve(Status::OK, Some(1)), "nothing was promised");
        pushes.pushes(&page.view());
        for (status, length, may_be_sent) in [
            (Status::OK, Some(PUSHED_FILE_MAX), true),
            (Status::OK, Some(PUSHED_FILE_MAX + 1), false),
            (Status::OK, None, false),
            (Status::NOT_FOUND, Some(1), false),
        ] {
            assert_eq!(pushes.reserve(status, length), may_be_sent, "{status:?} {length:?}");
        }
        // One file of the maximum size was counted above.
        let more = PUSHED_BYTES_MAX / PUSHED_FILE_MAX - 1;
        assert!((0..more).all(|_| pushes.reserve(Status::OK, Some(PUSHED_FILE_MAX))));
        assert!(!pushes.reserve(Status::OK, Some(1)));
    }
}

//! What one connection was pushed, promised or told of without asking.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rocknet_proto::fields::Known;
use rocknet_proto::h2::{PushRequest, ServerConnection, StreamId};
use rocknet_proto::request::{OwnedRequest, Request, Version};
use rocknet_proto::status::Status;

use crate::preload::{self, Preloads};
use crate::response::FieldList;

/// Promises a connection: several pages with all they need. A client that goes on is better served by its own cache.
const PROMISES_MAX: u32 = 128;

/// Largest file that is pushed: half a second of a slow line. What is larger, the client may see fit to ask for or not.
const PUSHED_FILE_MAX: u64 = 512 * 1024;

/// Bytes pushed on one connection, of which the client may have much already.
const PUSHED_BYTES_MAX: u64 = 4 << 20;

/// Targets remembered a connection, by eight bytes each: so that nothing is pushed that was asked for, pushed, or told of.
/// When they are full nothing is pushed any more.
const SEEN_MAX: usize = 4096;

/// Fields that identify the sender of a request. They are not part of the promise, because the client knows them.
const SENDER_FIELDS: [Known; 5] = [
    Known::Authorization,
    Known::Forwarded,
    Known::XForwardedFor,
    Known::XForwardedHost,
    Known::XForwardedProto,
];

/// A stream that was promised, and the request it answers.
pub struct PromisedStream {
    pub id: StreamId,
    pub request: Rc<OwnedRequest>,
}

/// What may be pushed with a response that is still being made.
pub struct PendingPage {
    pub request: Rc<OwnedRequest>,
    pub preloads: Option<Arc<Preloads>>,
}

/// What one connection was told of and sent without asking.
#[derive(Default)]
pub struct PushState(Option<Box<SeenTargets>>);

struct SeenTargets {
    /// Digests of authorities and targets.
    targets: HashSet<u64>,
    hasher: RandomState,
    promises: u32,
    bytes: u64,
}

impl PushState {
    /// Remembers what the client asks for itself. Before the first page that needs something nothing is kept.
    #[inline]
    pub fn record_request(&mut self, request: &Request<'_>) {
        if let Some(seen) = &mut self.0 {
            seen.is_new(request.authority, request.target);
        }
    }

    /// Promises what the client takes of `targets` and has not seen.
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
        let seen = self.seen(request);
        // What the client can decode holds for all it gets.
        let encodings = request.fields.get(Known::AcceptEncoding);
        let encodings = encodings.filter(|_| !request.fields.is_repeated(Known::AcceptEncoding));
        let fields: Option<(Known, &[u8])> = encodings.map(|value| (Known::AcceptEncoding, value));
        // A pushed file is checked like a request of the same client.
        let sender = SENDER_FIELDS
            .iter()
            .flat_map(|name| request.fields.all(*name).map(|value| (*name, value)));
        let request_fields: Vec<(Known, &[u8])> = fields.into_iter().chain(sender).collect();
        for target in targets {
            if !engine.may_push(page) || seen.promises >= PROMISES_MAX || seen.bytes >= PUSHED_BYTES_MAX {
                return;
            }
            if !seen.is_new(request.authority, target) {
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
                    seen.promises += 1;
                    let stream =
                        OwnedRequest::synthetic_get(Version::Http2, request.authority, target, &request_fields);
                    promised.push(PromisedStream {
                        id,
                        request: Rc::new(stream),
                    });
                }
                Err(error) => tracing::debug!("not pushed: {error}"),
            }
        }
    }

    /// Promises what goes along with a response that a handler has made: by the configuration, and by its own Link fields.
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

    /// Tells the client what it will need, if there is anything that it was not told of before.
    pub fn send_early_hints(
        &mut self,
        engine: &mut ServerConnection,
        page: StreamId,
        request: &Request<'_>,
        preloads: &Preloads,
        out: &mut Vec<u8>,
    ) {
        let seen = self.seen(request);
        let mut new = 0;
        for target in &preloads.targets {
            new += usize::from(seen.is_new(request.authority, target));
        }
        if new > 0 {
            let link = (&b"link"[..], preloads.link.as_bytes());
            // A stream that has gone needs no hint.
            let _ = engine.send_interim(page, Status::EARLY_HINTS, [link], out);
        }
    }

    /// Whether an answer so long is sent on a promised stream; it is counted then.
    pub fn reserve(&mut self, status: Status, length: Option<u64>) -> bool {
        let Some(seen) = &mut self.0 else { return false };
        match length {
            Some(length)
                if status == Status::OK && length <= PUSHED_FILE_MAX && seen.bytes + length <= PUSHED_BYTES_MAX =>
            {
                seen.bytes += length;
                true
            }
            _ => false,
        }
    }

    fn seen(&mut self, page: &Request<'_>) -> &mut SeenTargets {
        self.0.get_or_insert_with(|| {
            let mut seen = SeenTargets {
                targets: HashSet::new(),
                hasher: RandomState::default(),
                promises: 0,
                bytes: 0,
            };
            seen.is_new(page.authority, page.target);
            Box::new(seen)
        })
    }
}

impl SeenTargets {
    /// Remembers a target; false if it was known, or there is no room to remember it.
    fn is_new(&mut self, authority: &[u8], target: &[u8]) -> bool {
        let digest = self.hasher.hash_one((authority, target));
        self.targets.len() < SEEN_MAX && self.targets.insert(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> OwnedRequest {
        OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &[])
    }

    #[test]
    fn each_target_is_new_once() {
        let (mut pushes, page) = (PushState::default(), page());
        let other = OwnedRequest::synthetic_get(Version::Http2, b"h", b"/a", &[]);
        pushes.record_request(&other.view());
        let seen = pushes.seen(&page.view());
        for (authority, target, new) in [
            // What came before the first page is not kept; the page itself is.
            ("h", "/a", true),
            ("h", "/a", false),
            ("h", "/", false),
            ("g", "/", true),
            ("h/", "a", true),
        ] {
            assert_eq!(
                seen.is_new(authority.as_bytes(), target.as_bytes()),
                new,
                "{authority} {target}"
            );
        }
        for number in 0..SEEN_MAX as u32 {
            seen.is_new(b"h", &number.to_be_bytes());
        }
        assert_eq!(seen.targets.len(), SEEN_MAX);
        assert!(!seen.is_new(b"h", b"/one-more"));
    }

    #[test]
    fn what_is_pushed_is_bounded() {
        let (mut pushes, page) = (PushState::default(), page());
        assert!(!pushes.reserve(Status::OK, Some(1)), "nothing was promised");
        pushes.seen(&page.view());
        for (status, length, taken) in [
            (Status::OK, Some(PUSHED_FILE_MAX), true),
            (Status::OK, Some(PUSHED_FILE_MAX + 1), false),
            (Status::OK, None, false),
            (Status::NOT_FOUND, Some(1), false),
        ] {
            assert_eq!(pushes.reserve(status, length), taken, "{status:?} {length:?}");
        }
        let more = PUSHED_BYTES_MAX / PUSHED_FILE_MAX - 1;
        assert!((0..more).all(|_| pushes.reserve(Status::OK, Some(PUSHED_FILE_MAX))));
        assert!(!pushes.reserve(Status::OK, Some(1)));
    }
}

//! Server-push state of one connection: pushed, promised and announced targets, and their limits.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rocknet_proto::fields::KnownField;
use rocknet_proto::h2::{PushRequest, ServerConnection, StreamId};
use rocknet_proto::request::{OwnedRequest, Request, Version};
use rocknet_proto::status::Status;

use crate::preload::{self, Preloads};
use crate::response::FieldList;

/// Maximum number of promises for each connection: several pages with all their resources. After that, most resources
/// are in the client's cache.
const PROMISES_MAX: u32 = 128;

/// Maximum size of a pushed file in bytes: half a second of a slow line. The client requests larger files itself if it
/// needs them.
const PUSHED_FILE_MAX: u64 = 512 * 1024;

/// Maximum number of bytes pushed on one connection, because the client may have many of them already.
const PUSHED_BYTES_MAX: u64 = 4 << 20;

/// Maximum number of remembered targets for each connection, at eight bytes each. They prevent pushing a target that
/// was requested, pushed or announced before. When the set is full, nothing is pushed any more.
const SEEN_MAX: usize = 4096;

/// Fields that identify the sender of a request. A promised request inherits them, but the PUSH_PROMISE frame does not
/// contain them, because the client knows them.
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
pub struct PushState(Option<Box<SeenTargets>>);

struct SeenTargets {
    /// Digests of authority and target.
    targets: HashSet<u64>,
    hasher: RandomState,
    promises: u32,
    bytes: u64,
}

impl PushState {
    /// Remembers a target that the client has requested. Nothing is stored before the first page with resources.
    #[inline]
    pub fn record_request(&mut self, request: &Request<'_>) {
        if let Some(seen) = &mut self.0 {
            seen.is_new(request.authority, request.target);
        }
    }

    /// Promises the `targets` that the client has not seen, until a limit is reached or the client accepts no more
    /// pushes.
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

    /// Promises the files for the response of a handler: those of the configuration, and those of its Link fields.
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
        let seen = self.seen(request);
        let mut new = 0;
        for target in &preloads.targets {
            new += usize::from(seen.is_new(request.authority, target));
        }
        if new > 0 {
            let link = (&b"link"[..], preloads.link.as_bytes());
            // An error means that the stream is gone and needs no hint.
            let _ = engine.send_interim(page, Status::EARLY_HINTS, [link], out);
        }
    }

    /// Returns true if a response may be sent on a promised stream, and counts its bytes. Only a response with status
    /// 200 whose length is known and within the limits may be sent.
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
    /// Adds a target to the set. Returns false if the set contains it already, or is full.
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
            // Targets requested before the first page are not stored; the page itself is.
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
    fn the_size_of_a_pushed_file_and_the_pushed_bytes_of_a_connection_are_limited() {
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

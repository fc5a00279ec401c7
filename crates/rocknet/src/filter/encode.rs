//! Applies a content coding to the response of any handler.
//!
//! A response qualifies if its type is text or another compressible type, and its length is at least 1 KiB or unknown.
//! It must not have a coding, a range, `no-transform` or an HTTP message signature (RFC 9421), nor a status of 1xx, 204
//! to 206 or 304. If a response qualifies, `Accept-Encoding` is added to `Vary` even if the client accepts no coding,
//! because a shared cache must keep coded and uncoded forms apart.
//!
//! A strong `ETag` becomes weak: the coded bytes differ from those that the handler tagged. A later request has
//! `If-None-Match: W/"x"`, which the handler compares weakly (RFC 9110 §13.1.2), so it responds with 304 as before.
//! `If-Match` and `If-Range` compare strongly and do not match a weak tag. The alternative is a suffix on the tag, as
//! in the tags of static files. The suffix would have to be removed from every request before the handler receives the
//! request.

mod fields;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_handler::filter::{DeferredFilter, Filter, FilterContext, Phase};
use rocknet_handler::stored::{MAX_CODED, Stored};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::method::Method;
use rocknet_proto::semantics::media_type::is_compressible;
use rocknet_proto::semantics::negotiation::{self, AcceptEncoding, Coding};
use rocknet_proto::status::Status;

use crate::blocking::{Job, Pool};
use crate::files::coding::{self, COMPRESS_FROM};
use crate::files::encode::{EncodedFile, EncoderLimit};
use crate::files::entry::PREFERRED_CODINGS;
use crate::response::{Body, Response, Stream};

pub use stream::Encoders;
use stream::{CodedStream, MAX_INLINE, SinglePiece, UnsentBody};

/// Maximum size in bytes of a body in memory that one job encodes completely, so that its length is known before the
/// head is sent. A longer body is sent while it is encoded, because the job would take more than 20 ms while the client
/// waits.
const MAX_WHOLE: usize = MAX_CODED;

/// The filter that applies content codings. All workers share it, and with it the limit on the memory of encoders.
pub struct Encode {
    encoders: Encoders,
}

impl Encode {
    /// Creates the filter. `files` limits the number of files that the server encodes at the same time while it sends
    /// them.
    pub fn new(files: EncoderLimit) -> Encode {
        let mut encoders = Encoders::default();
        encoders.files = files;
        Encode { encoders }
    }
}

impl Filter for Encode {
    fn phase(&self) -> Phase {
        Phase::Encode
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        let route = context.route;
        let request = context.request.filter(|_| route.compress && !response.is_negotiated)?;
        let accept_encoding = joined(&request.fields, KnownField::AcceptEncoding);
        let if_none_match = joined(&request.fields, KnownField::IfNoneMatch);
        let conditions = Conditions {
            // The filter for `request` has checked `route.compress`.
            compress: true,
            accept_encoding: accept_encoding.as_deref(),
            if_none_match: if_none_match.as_deref(),
            is_head: request.method == Method::Head,
            priority: route.priority,
        };
        let pending = apply(&conditions, &context.services.pool, &self.encoders, response)?;
        Some(Box::new(pending))
    }
}

/// Joins all values of a list field; copies only if the field was sent more than once.
fn joined<'a>(fields: &Fields<'a>, name: KnownField) -> Option<Cow<'a, [u8]>> {
    if fields.is_repeated(name) {
        return Some(Cow::Owned(fields.get_all(name).collect::<Vec<_>>().join(&b", "[..])));
    }
    fields.get(name).map(Cow::Borrowed)
}

/// The inputs other than the response that determine its coding.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Setting `compress` of the route. If false, the response is not changed.
    pub compress: bool,
    /// All `Accept-Encoding` values of the request, joined with `, `; `None` without the field.
    pub accept_encoding: Option<&'a [u8]>,
    /// All `If-None-Match` values of the request, joined with `, `; `None` without the field.
    pub if_none_match: Option<&'a [u8]>,
    /// True if the request method is HEAD.
    pub is_head: bool,
    /// Priority of jobs in the pool.
    pub priority: Priority,
}

/// A response whose body is being encoded in the pool.
pub struct PendingEncoding {
    coding: Coding,
    job: Job<Option<Vec<u8>>>,
    /// Stored response that keeps the coded form.
    stored: Option<Arc<dyn Stored>>,
}

/// Applies a content coding to the response if it qualifies. Returns `None` if the response is ready to be sent.
/// Otherwise [`DeferredFilter::complete`] must be called on the result to complete the response.
pub fn apply(
    conditions: &Conditions<'_>,
    pool: &Pool,
    encoders: &Encoders,
    response: &mut Response,
) -> Option<PendingEncoding> {
    if !conditions.compress {
        return None;
    }
    if response.status == Status::NOT_MODIFIED {
        // The client may have stored the coded form, whose tag is weak.
        fields::weaken_confirmed(&mut response.fields, conditions.if_none_match);
        return None;
    }
    if !qualifies(response) {
        return None;
    }
    fields::add_vary(&mut response.fields);
    let coding = negotiation::choose_coding(AcceptEncoding::parse(conditions.accept_encoding), &PREFERRED_CODINGS);
    if coding == Coding::Identity {
        return None;
    }
    let stored = response.stored.clone();
    if let Some(form) = stored.as_deref().and_then(|stored| stored.coded_forms().get(coding)) {
        // The inner `None`: the coded form is not shorter, so the body remains uncoded.
        if let Some(form) = form {
            response.body = Body::Bytes(form.clone());
            fields::mark(&mut response.fields, coding);
        }
        return None;
    }
    if conditions.is_head {
        // Sends the same fields as for GET, except the length, because determining it would mean encoding the body (RFC
        // 9110 §9.3.2).
        response.body = Body::Stream(Box::new(UnsentBody));
        fields::mark(&mut response.fields, coding);
        return None;
    }
    // `Ok`: the coded body. `Err`: the body that remains uncoded, for instance because its coded form is not shorter.
    let coded = match std::mem::take(&mut response.body) {
        Body::Bytes(bytes) if bytes.len() <= MAX_INLINE => {
            let encoded = coding::encode(coding, &bytes).map(Bytes::from);
            keep(stored.as_deref(), coding, encoded.as_ref());
            encoded.map(Body::Bytes).ok_or(bytes.into())
        }
        Body::Bytes(bytes) if bytes.len() <= MAX_WHOLE => {
            response.body = Body::Bytes(bytes.clone());
            let job = pool.spawn(conditions.priority, move || coding::encode(coding, &bytes));
            return Some(PendingEncoding { coding, job, stored });
        }
        Body::Bytes(bytes) => {
            let source = Box::new(SinglePiece::new(bytes.clone()));
            stream(conditions, pool, encoders, coding, source).map_err(|_| Body::Bytes(bytes))
        }
        Body::Stream(source) => stream(conditions, pool, encoders, coding, source).map_err(Body::Stream),
        Body::File(part) => match EncodedFile::new(
            &encoders.files,
            coding,
            Arc::clone(&part.file),
            pool.clone(),
            conditions.priority,
        ) {
            Ok(Some(file)) => Ok(Body::Stream(Box::new(file))),
            // The limit on files that are encoded at the same time is reached.
            Ok(None) => Err(Body::File(part)),
            Err(error) => {
                tracing::warn!("cannot compress a file: {error}");
                Err(Body::File(part))
            }
        },
        body => Err(body),
    };
    response.body = match coded {
        Ok(body) => {
            fields::mark(&mut response.fields, coding);
            body
        }
        Err(body) => body,
    };
    None
}

/// Keeps the coded form of the body of a stored response. `form`: `None` if it is not shorter.
fn keep(stored: Option<&dyn Stored>, coding: Coding, form: Option<&Bytes>) {
    if let Some(stored) = stored {
        stored.coded_forms().set(coding, form);
    }
}

/// Returns the coded stream, or `source` if it cannot be encoded now, mostly because the memory for encoders is used
/// up.
fn stream(
    conditions: &Conditions<'_>,
    pool: &Pool,
    encoders: &Encoders,
    coding: Coding,
    source: Box<dyn Stream>,
) -> Result<Body, Box<dyn Stream>> {
    let stream = CodedStream::new(coding, source, encoders, pool.clone(), conditions.priority)?;
    Ok(Body::Stream(Box::new(stream)))
}

/// Returns true if the response qualifies for a coding.
fn qualifies(response: &Response) -> bool {
    let has_body = match &response.body {
        Body::Bytes(_) | Body::Stream(_) => true,
        // If `Vary` already contains `Accept-Encoding` or `*`, the files handler has chosen the coding of the file.
        Body::File(part) => {
            part.offset == 0 && part.length == part.file.length && !fields::varies_by_coding(&response.fields)
        }
        Body::Empty | Body::Parts(_) | Body::Tunnel(_) | Body::Abort => false,
    };
    has_body
        && response.body.length().is_none_or(|length| length >= COMPRESS_FROM)
        && !matches!(response.status.code(), ..200 | 204..=206 | 304)
        && !response.fields.contains(KnownField::ContentEncoding)
        && !response.fields.contains(KnownField::ContentRange)
        && fields::allows_transforming(&response.fields)
        && response
            .fields
            .value("Content-Type")
            .is_some_and(|value| is_compressible(value.as_bytes()))
}

impl DeferredFilter for PendingEncoding {
    fn complete<'a>(self: Box<Self>, response: &'a mut Response) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.finish(response))
    }
}

impl PendingEncoding {
    /// Waits for the job and puts its result into the response. The body remains uncoded if the job failed or its
    /// result is not shorter.
    async fn finish(self, response: &mut Response) {
        let stored = self.stored.as_deref();
        match self.job.await {
            Ok(Some(encoded)) => {
                let encoded = Bytes::from(encoded);
                keep(stored, self.coding, Some(&encoded));
                response.body = Body::Bytes(encoded);
                fields::mark(&mut response.fields, self.coding);
            }
            Ok(None) => keep(stored, self.coding, None),
            Err(error) => tracing::debug!("cannot compress a response: {error}"),
        }
    }
}

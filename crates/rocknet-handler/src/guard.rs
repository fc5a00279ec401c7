//! Guards: conditions that a request has to meet before its route does anything else.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::template::Values;
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::semantics::cgi_names;

use crate::client::Client;
use crate::response::{FieldList, Response};
use crate::services::Services;
use crate::tls_info::TlsInfo;

/// The values on which a guard bases its decision.
#[derive(Clone, Copy)]
pub struct GuardContext<'a> {
    /// Services of the worker.
    pub services: &'a Rc<Services>,
    /// Client: the one that a trusted proxy reports, else the peer.
    pub client: Client,
    /// Other end of the connection.
    pub peer: Client,
    /// Parameters of the TLS handshake. `None` for a connection without TLS.
    pub tls: Option<&'a Rc<TlsInfo>>,
    /// Method, target and header fields.
    pub request: &'a Request<'a>,
    /// Values of the request for placeholders. The user is the one that earlier guards have authenticated.
    pub values: &'a dyn Values,
    /// Values that the request keeps until it ends, such as permits.
    pub held: &'a Held,
}

/// Values that a request keeps until its response is sent, its tunnel is closed, or it fails. Boxed, because most
/// requests keep none.
#[derive(Default)]
pub struct Held(RefCell<Option<Box<HeldValues>>>);

type HeldValues = Vec<Box<dyn Any>>;

impl Held {
    /// Keeps a value until the request ends.
    pub fn keep(&self, value: impl Any) {
        self.0.borrow_mut().get_or_insert_default().push(Box::new(value));
    }

    /// Returns true if no value is kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_none()
    }

    /// Takes all values.
    pub fn take(&self) -> Held {
        Held(RefCell::new(self.0.take()))
    }

    /// Returns the first result that `find` returns for a value of this type; `None` if it returns none.
    pub fn find<T: Any, R>(&self, find: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let values = self.0.borrow();
        let mut values = values.iter().flat_map(|values| values.iter());
        values.by_ref().filter_map(|value| value.downcast_ref()).find_map(find)
    }
}

/// Decision about a request: the result of its admission, or the response to a request that is not admitted.
pub type Admission = Result<Admitted, Box<Response>>;

/// Result of a guard that admits a request.
#[derive(Clone, Default)]
pub struct Admitted {
    /// User whom the guard has authenticated; `None` if it authenticates no user.
    pub user: Option<Arc<str>>,
    /// Changes of the request and its response that the guard requires; `None` if it requires none.
    pub identity: Option<Arc<Identity>>,
}

impl Admitted {
    /// Admits a request of a user, or of an unknown client.
    pub fn user(user: Option<Arc<str>>) -> Admitted {
        Admitted { user, identity: None }
    }
}

/// Changes to an admitted request by which handlers learn who the client is: header fields that the guard sets replace
/// fields that the client has sent. For a signed URL, only `signature` is set.
#[derive(Debug, Default)]
pub struct Identity {
    /// Names of the fields by which handlers recognize the identity. Fields of the client with these names are removed,
    /// also if `fields` is empty.
    pub names: Arc<[Box<str>]>,
    /// Fields that are added to the request.
    pub fields: Vec<(Box<str>, Box<[u8]>)>,
    /// `Set-Cookie` fields for the response, such as those of an authorization service or of a renewed session.
    pub cookies: FieldList,
    /// True if the response depends on the client, so that it is not shared with others. False for clients that are
    /// admitted without being identified, such as by the signature of a URL.
    pub identifies_client: bool,
    /// Last parameter of the query, which only the guard needs: the signature of the URL. Handlers, rules and caches
    /// get the request without it. `None`: the query remains.
    pub signature: Option<Box<[u8]>>,
}

impl Identity {
    /// Returns true if the identity replaces or removes fields of the client.
    pub fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns the request that handlers get: with `fields` in place of the client's fields, or without the signature.
    /// A field whose name applications cannot distinguish from one of the names, such as `Remote_User`, is removed too.
    pub fn apply(&self, request: &OwnedRequest) -> OwnedRequest {
        if let Some(signature) = &self.signature {
            return request.without_last_parameter(signature);
        }
        let is_removed = |name: &[u8]| self.names.iter().any(|own| cgi_names::are_same(name, own.as_bytes()));
        let added = self.fields.iter();
        let added = added.map(|(name, value)| (name.as_bytes(), &**value));
        with_own_fields(request, is_removed, added)
    }
}

/// Returns the request without the fields for whose names `is_removed` returns true, and with `added` fields. The names
/// are also removed from the client's `Connection`, because the added fields would otherwise not be passed on.
pub fn with_own_fields<'f>(
    request: &'f OwnedRequest,
    is_removed: impl Fn(&[u8]) -> bool,
    added: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> OwnedRequest {
    let fields = request.view().fields;
    if !connection_options(fields).any(&is_removed) {
        return request.with_edited_fields(is_removed, added);
    }
    let options: Vec<_> = connection_options(fields)
        .filter(|option| !is_removed(option))
        .collect();
    let options = options.join(&b", "[..]);
    // A first edit replaces the `Connection` lines by one with the remaining options. Without such options, the edit at
    // the end removes these lines.
    let connection = (!options.is_empty()).then(|| {
        OwnedRequest::with_edited_fields(
            request,
            |name| name.eq_ignore_ascii_case(b"connection") || is_removed(name),
            [(&b"Connection"[..], &options[..])].into_iter(),
        )
    });
    let is_connection = |name: &[u8]| connection.is_none() && name.eq_ignore_ascii_case(b"connection");
    let request = connection.as_ref().unwrap_or(request);
    let added: Vec<_> = added.collect();
    request.with_edited_fields(|name| is_connection(name) || is_removed(name), added.into_iter())
}

/// Returns the members of all `Connection` lines.
fn connection_options<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let lines = fields.get_all(KnownField::Connection);
    let options = lines.flat_map(|line| line.split(|byte| *byte == b','));
    options.map(<[u8]>::trim_ascii).filter(|option| !option.is_empty())
}

/// Future of a decision. Dropping it early has no side effects.
pub type Deferred = Pin<Box<dyn Future<Output = Admission>>>;

/// Result of [`Guard::check`].
#[must_use]
pub enum Check {
    /// The decision.
    Decided(Admission),
    /// The decision has to wait, for example for a password hash.
    Deferred(Deferred),
}

/// Decides whether a request is admitted to a route. One value serves all workers.
///
/// A request is checked at each route that it leads to, because the file that is served may belong to a different route
/// than the path. A guard that several of these routes share decides once about a request.
pub trait Guard: Send + Sync {
    /// Decides about a request.
    fn check(&self, context: &GuardContext<'_>) -> Check;

    /// Admits a request for which the worker cache has a response, if that takes no work. Returns the user as in
    /// [`Admitted::user`], or the outer `None` if the caller has to use [`Guard::check`]. Has no side effects.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>>;

    /// Returns true if the guard removes fields that clients must not set, so that trailer fields are dropped, too.
    fn removes_fields(&self) -> bool {
        false
    }

    /// Returns true for the name of a cookie that only the guard needs, such as that of a session. Handlers get
    /// requests without it.
    fn hides_cookie(&self, _name: &[u8]) -> bool {
        false
    }

    /// Returns true if the guard counts the requests that it admits, so that [`Guard::count_cached`] has to be called.
    fn counts(&self) -> bool {
        false
    }

    /// Counts a request that is about to be served from the worker cache. Called once, after all guards have admitted
    /// the request. `ends_at_once`: true if the response is so small that the send buffer of the socket usually takes
    /// it whole. The request then ends immediately, so nothing has to be kept in [`GuardContext::held`]. Returns a
    /// value for [`Guard::uncount_cached`]. If the result is `None`, nothing was counted, and the caller has to use
    /// [`Guard::check`].
    fn count_cached(&self, _context: &GuardContext<'_>, _ends_at_once: bool) -> Option<u32> {
        Some(0)
    }

    /// Takes back that a request was counted, because a further guard has not counted it. `counted`: the result of
    /// [`Guard::count_cached`]. The caller drops the values in [`GuardContext::held`].
    fn uncount_cached(&self, _context: &GuardContext<'_>, _counted: u32) {}
}

//! Endpoint: the method, path and permission for one kind of request.

use serde::Deserialize;

use super::error::ApiError;
use super::permission::Permission;
use super::request::Request;

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads, and changes nothing.
    Get,
    /// Starts an action, such as a reload or a check.
    Post,
    /// Replaces a value.
    Put,
}

impl Method {
    /// Returns the name of the method in HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// Variable parts of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'i> {
    /// Query of the target, without the question mark.
    pub query: &'i [u8],
    /// Body.
    pub body: &'i [u8],
}

/// Method, path and permission for one kind of request, with the parser of these requests.
#[derive(Debug)]
pub struct Endpoint {
    /// Method.
    pub method: Method,
    /// Path.
    pub path: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Permission that the client needs.
    pub permission: Permission,
    parse: fn(&Input<'_>) -> Result<Request, ApiError>,
}

impl Endpoint {
    pub(super) const fn new(
        method: Method,
        path: &'static str,
        summary: &'static str,
        parse: fn(&Input<'_>) -> Result<Request, ApiError>,
    ) -> Endpoint {
        Endpoint {
            method,
            path,
            summary,
            permission: match method {
                Method::Get => Permission::Read,
                Method::Post | Method::Put => Permission::Full,
            },
            parse,
        }
    }

    /// Requires full permission for a GET request: the reply may contain secrets, or the request makes the server send
    /// a request itself, such as a visit to a site.
    pub(super) const fn secret(self) -> Endpoint {
        Endpoint {
            permission: Permission::Full,
            ..self
        }
    }

    /// Parses a request.
    ///
    /// # Errors
    ///
    /// Fails with status 400 if the query or the body is not valid for this endpoint.
    pub fn parse(&self, input: &Input<'_>) -> Result<Request, ApiError> {
        (self.parse)(input)
    }
}

/// Returns the request, or an error if the client sent a body with it.
pub(super) fn without_body(input: &Input<'_>, request: Request) -> Result<Request, ApiError> {
    if input.body.is_empty() {
        Ok(request)
    } else {
        Err(ApiError::new(400, "this request has no body"))
    }
}

/// Reads the body as JSON.
pub(super) fn from_json<'b, T: Deserialize<'b>>(input: &Input<'b>) -> Result<T, ApiError> {
    serde_json::from_slice(input.body).map_err(|error| ApiError::new(400, format!("the body is not valid: {error}")))
}

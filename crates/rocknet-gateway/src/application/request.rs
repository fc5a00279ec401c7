//! Encodes a request in the protocol of its application, with the variables that the configuration overrides.

use rocknet_config::model::Protocol;
use rocknet_proto::cgi::VariableError;
use rocknet_proto::fastcgi::{self, Params};
use rocknet_proto::request::Request;
use rocknet_proto::{scgi, uwsgi};

use super::group::ApplicationGroup;
use crate::gateway::variables::{self, RequestContext, VariableSink, VariableSource};

/// Returns the encoded request without its body. `length`: length of the body in bytes; `None` if there is no body.
///
/// # Errors
///
/// Returns an error if the protocol cannot encode a variable.
pub fn write(
    application: &ApplicationGroup,
    request: &Request<'_>,
    path: &str,
    context: &RequestContext<'_>,
    length: Option<u64>,
) -> Result<Vec<u8>, VariableError> {
    let (name, path_info) = names(&application.mount, path);
    let root = application.root.as_deref();
    let source = VariableSource::Application { name, path_info, root };
    // Writes all variables of the request, with the overrides of the configuration.
    let all = |sink: &mut dyn VariableSink| -> Result<(), VariableError> {
        if application.params.is_empty() {
            return variables::write(&mut &mut *sink, request, source, context, length);
        }
        let mut without_overrides = WithoutOverrides {
            sink,
            params: &application.params,
        };
        variables::write(&mut without_overrides, request, source, context, length)?;
        let overrides = application.params.iter().filter(|(_, value)| !value.is_empty());
        for (name, value) in overrides {
            without_overrides.sink.put(name.as_bytes(), value.as_bytes())?;
        }
        Ok(())
    };
    match application.protocol {
        Protocol::FastCgi => {
            let mut records = Vec::with_capacity(RECORDS);
            fastcgi::begin(&mut records, application.keep > 0);
            let mut params = Params::new(&mut records);
            all(&mut params)?;
            params.finish();
            Ok(records)
        }
        Protocol::Scgi => {
            let mut head = Scgi(scgi::ScgiRequest::new(length.unwrap_or(0)));
            all(&mut head)?;
            Ok(head.0.finish())
        }
        Protocol::Uwsgi => {
            let mut head = Uwsgi(uwsgi::UwsgiRequest::default());
            all(&mut head)?;
            Ok(head.0.finish())
        }
    }
}

/// Initial capacity in bytes for the records of a request: the usual size of its variables.
const RECORDS: usize = 2048;

/// Splits a path into `SCRIPT_NAME` and `PATH_INFO`. A route with a pattern may match a path without the prefix. Such a
/// path is treated as if the application were the whole site.
fn names<'p>(mount: &str, path: &'p str) -> (&'p str, &'p str) {
    match path.strip_prefix(mount) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => path.split_at(mount.len()),
        _ => ("", path),
    }
}

/// Lets [`variables::write`], which accepts only sized sinks, write to a `dyn VariableSink`.
impl<S: VariableSink + ?Sized> VariableSink for &mut S {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        (**self).put(name, value)
    }
}

/// A sink that drops the variables that the configuration overrides and passes all others to another sink.
struct WithoutOverrides<'a> {
    sink: &'a mut dyn VariableSink,
    params: &'a [(String, String)],
}

impl VariableSink for WithoutOverrides<'_> {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        match self.params.iter().any(|(own, _)| own.as_bytes() == name) {
            true => Ok(()),
            false => self.sink.put(name, value),
        }
    }
}

struct Scgi(scgi::ScgiRequest);

impl VariableSink for Scgi {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        // `scgi::ScgiRequest` has written `CONTENT_LENGTH` already, because SCGI requires it first.
        match name {
            b"CONTENT_LENGTH" => Ok(()),
            _ => self.0.push(name, value),
        }
    }
}

struct Uwsgi(uwsgi::UwsgiRequest);

impl VariableSink for Uwsgi {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        self.0.push(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_after_the_prefix_of_the_application() {
        for (mount, path, name, path_info) in [
            ("", "/", "", "/"),
            ("", "/a/b", "", "/a/b"),
            ("/app", "/app", "/app", ""),
            ("/app", "/app/", "/app", "/"),
            ("/app", "/app/x/y", "/app", "/x/y"),
            ("/app", "/apple", "", "/apple"),
            ("/app", "/other/app", "", "/other/app"),
            ("/a/b", "/a/b/c", "/a/b", "/c"),
        ] {
            assert_eq!(names(mount, path), (name, path_info), "{mount} {path}");
        }
    }
}

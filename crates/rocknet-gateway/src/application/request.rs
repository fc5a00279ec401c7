//! A request in the protocol of its application: the variables, with those that the configuration has its own words for.

use rocknet_config::model::Protocol;
use rocknet_proto::cgi::VariableError;
use rocknet_proto::fastcgi::{self, Params};
use rocknet_proto::request::Request;
use rocknet_proto::{scgi, uwsgi};

use super::group::Application;
use crate::gateway::variables::{self, Answerer, Place, Sink};

/// All that goes before the content. `length` is that of content that has been received.
pub fn write(
    application: &Application,
    request: &Request<'_>,
    path: &str,
    place: &Place<'_>,
    length: Option<u64>,
) -> Result<Vec<u8>, VariableError> {
    let (name, path_info) = names(&application.mount, path);
    let root = application.root.as_deref();
    let answerer = Answerer::Application { name, path_info, root };
    let all = |sink: &mut dyn Sink| -> Result<(), VariableError> {
        if application.params.is_empty() {
            return variables::write(&mut &mut *sink, request, answerer, place, length);
        }
        let mut spoken = Spoken {
            sink,
            params: &application.params,
        };
        variables::write(&mut spoken, request, answerer, place, length)?;
        let told = application.params.iter().filter(|(_, value)| !value.is_empty());
        for (name, value) in told {
            spoken.sink.put(name.as_bytes(), value.as_bytes())?;
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

/// The usual size of a request with its variables.
const RECORDS: usize = 2048;

/// What an application is called in a path, and what follows that. It is asked as the whole site where the path does not
/// lead to it by its name: a pattern may have brought it there.
fn names<'p>(mount: &str, path: &'p str) -> (&'p str, &'p str) {
    match path.strip_prefix(mount) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => path.split_at(mount.len()),
        _ => ("", path),
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        (**self).put(name, value)
    }
}

/// Leaves out what the configuration tells in other words.
struct Spoken<'a> {
    sink: &'a mut dyn Sink,
    params: &'a [(String, String)],
}

impl Sink for Spoken<'_> {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        match self.params.iter().any(|(own, _)| own.as_bytes() == name) {
            true => Ok(()),
            false => self.sink.put(name, value),
        }
    }
}

struct Scgi(scgi::ScgiRequest);

impl Sink for Scgi {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        // It stands first, before all that is put here.
        match name {
            b"CONTENT_LENGTH" => Ok(()),
            _ => self.0.push(name, value),
        }
    }
}

struct Uwsgi(uwsgi::UwsgiRequest);

impl Sink for Uwsgi {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        self.0.push(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parted_behind_the_name() {
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

//! Sends the file that an application names in its response: `X-Accel-Redirect` contains a path of the site,
//! `X-Sendfile` a path on disk. The file must be below a root of the site. The response keeps the fields of the
//! application.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;
use tracing::Level;

use super::context::RequestContext;
use super::{file_rules, further_routes};
use crate::endpoint::Endpoint;
use crate::files::entry::Found;
use crate::files::representation;
use crate::files::tree::Tree;
use crate::fixed;
use crate::handler::HandlerOutput;
use crate::log::throttle::Cause;
use crate::response::{Body, FieldList, Response};
use crate::site::{Site, SiteRoutes};
use crate::worker::Worker;

/// Field that names a file by a path of the site, as in a URL.
const PATH_FIELD: &str = "X-Accel-Redirect";
/// Fields that name a file by its path on disk. The second field comes from lighttpd; some applications send it as a
/// fallback.
const DISK_FIELDS: [&str; 2] = ["X-Sendfile", "X-LIGHTTPD-send-file"];
/// Fields that are taken from the file, not from the application.
const FILE_FIELDS: [&str; 7] = [
    "accept-ranges",
    "content-encoding",
    "content-length",
    "content-range",
    "etag",
    "last-modified",
    "transfer-encoding",
];

/// Reference to a file: a path of the site (`X-Accel-Redirect`) or of the file system (`X-Sendfile`).
#[derive(Debug, PartialEq, Eq)]
enum FileReference {
    Path(String),
    Disk(PathBuf),
}

/// Returns true if the response names a file to send in its place. Always false for a tunnel.
pub fn names_file(response: &Response) -> bool {
    !matches!(response.body, Body::Tunnel(_)) && referenced_file(&response.fields).is_some()
}

/// Replaces a response by the file that it names. If the new response names a file too, that file is not sent, so that
/// an application cannot cause an endless loop.
///
/// Must be called only for responses of handlers that may read the files of the site.
pub async fn follow(worker: Rc<Worker>, context: Rc<RequestContext>, response: Response) -> HandlerOutput {
    let snapshot = &context.config.snapshot;
    let site = context.site.and_then(|number| snapshot.sites.get(number as usize));
    let (Some(site), Some(request)) = (site, &context.request) else {
        return response.into();
    };
    match send(&worker, &context, site, request, response).await {
        Ok(response) => response.into(),
        Err(response) => HandlerOutput::Response(response),
    }
}

/// Returns the response with the file, or an error response if the file cannot be sent. Returns `Err` with the
/// rejection if the request may not enter the route of the file.
async fn send(
    worker: &Worker,
    context: &RequestContext,
    site: &Site,
    request: &OwnedRequest,
    mut response: Response,
) -> Result<Response, Box<Response>> {
    let routes = site.routes(context.is_secure);
    let Some(name) = referenced_file(&response.fields) else {
        return Ok(response);
    };
    // The body of the application's response is discarded without reading it.
    response.body = Body::Empty;
    let Some((endpoint, tree, path)) = locate(worker, routes, &name).await else {
        return Ok(not_found(&site.name, &name));
    };
    further_routes::enter(worker, &endpoint, context).await?;
    // Rules with `resolved` apply to `X-Accel-Redirect`, because its path could also be requested. A path on disk is
    // the choice of the application alone.
    if let FileReference::Path(_) = &name {
        file_rules::enter(worker, context, &path).await?;
    }
    let Some(entry) = worker.shared.cache.look_up_shared(&tree, &path.as_ref().into()).await else {
        // The shared cache accepts no lookup, because the server is overloaded.
        return Ok(fixed::error(Status::SERVICE_UNAVAILABLE));
    };
    further_routes::enter_file(worker, &tree, &entry, context).await?;
    Ok(match &entry.found {
        Found::Asset(asset) if asset.status == Status::OK => {
            // If the application's status is not 200, the whole file is sent: preconditions and ranges of the request
            // are ignored.
            let is_ok = response.status == Status::OK;
            let file = if is_ok {
                representation::full_response(asset, &request.view())
            } else {
                representation::plain_response(asset)
            };
            // A precondition has failed, or the range of the request is not satisfiable.
            if file.status.code() >= 400 {
                return Ok(file);
            }
            let status = if is_ok { file.status } else { response.status };
            let mut merged = merge_fields(&response.fields, file);
            merged.status = status;
            if endpoint.route.limits_bandwidth() {
                let _ = context.bandwidth_route.set(Arc::clone(&endpoint.route));
            }
            merged.upstream = response.upstream.clone();
            merged
        }
        _ => not_found(&site.name, &name),
    })
}

/// Logs that the file does not exist, and returns 404.
fn not_found(site: &str, name: &FileReference) -> Response {
    let cause = Cause {
        level: Level::WARN,
        what: "an application names a file that the site does not have",
        site,
        subject: "",
    };
    if cause.may_be_logged() {
        let name = match name {
            FileReference::Path(path) => format!("{PATH_FIELD}: {path}"),
            FileReference::Disk(path) => format!("X-Sendfile: {}", path.display()),
        };
        tracing::warn!(site, "an application names a file that the site does not have: {name}");
    }
    // The body is empty, so that the site's own error page is used.
    Response::new(Status::NOT_FOUND)
}

/// Returns the file that a response with these fields names, if any.
fn referenced_file(fields: &FieldList) -> Option<FileReference> {
    if let Some(path) = fields.value(PATH_FIELD) {
        return Some(FileReference::Path(path.to_owned()));
    }
    let file = DISK_FIELDS.iter().find_map(|name| fields.value(name))?;
    Some(FileReference::Disk(file.into()))
}

/// Returns the route in which the file is looked up, with its tree, and the path in that tree. Returns `None` if no
/// root of the site can contain the file.
async fn locate(
    worker: &Worker,
    routes: &SiteRoutes,
    name: &FileReference,
) -> Option<(Arc<Endpoint>, Arc<Tree>, Box<str>)> {
    match name {
        FileReference::Path(raw) => {
            let raw = raw.split('?').next().unwrap_or_default();
            let path = SafePath::parse(raw.as_bytes()).ok()?;
            let endpoint = routes.endpoint(path.as_str());
            Some((Arc::clone(endpoint), endpoint.tree.clone()?, path.as_str().into()))
        }
        FileReference::Disk(file) => {
            let trees: Vec<_> = routes
                .endpoints()
                .filter_map(|endpoint| endpoint.tree.clone())
                .collect();
            let priority = routes.root.route.priority;
            let file = file.clone();
            let job = worker.pool.spawn(priority, move || find_tree(&trees, &file));
            let (tree, path) = job.await.ok()??;
            // Several routes may share the folder. The one that applies to the path of the file is used.
            let own = routes.endpoint_of_file(&tree, &path).filter(|own| own.tree.is_some());
            let of_tree = |endpoint: &&Arc<Endpoint>| endpoint.tree.as_ref().is_some_and(|own| Arc::ptr_eq(own, &tree));
            let endpoint = own.or_else(|| routes.endpoints().find(of_tree))?;
            Some((Arc::clone(endpoint), endpoint.tree.clone()?, path))
        }
    }
}

/// Returns the tree whose root contains the file, and the path of the file in that tree. Only path names are compared.
/// Of several such trees, the one with the longest root is returned. `None`: no root contains it. May block on the
/// disk.
fn find_tree(trees: &[Arc<Tree>], file: &Path) -> Option<(Arc<Tree>, Box<str>)> {
    let below = |tree: &Arc<Tree>| {
        let root = tree.folder();
        // The root is compared as configured, and with symbolic links resolved, because PHP's `realpath` resolves them.
        let real = root.canonicalize().ok();
        let rest = std::iter::once(root)
            .chain(real.as_deref())
            .find_map(|root| file.strip_prefix(root).ok())?;
        let inside = format!("/{}", rest.to_str()?);
        let path = match tree.place() {
            // An alias can serve a single file of its folder, and then leads to no other file.
            Some(place) if !place.contains(&inside) => return None,
            _ => tree.of_site(&inside),
        };
        let path = SafePath::from_decoded(&path).ok()?.as_str().into();
        Some((root.as_os_str().len(), (Arc::clone(tree), path)))
    };
    let found = trees.iter().filter_map(below).max_by_key(|(length, _)| *length);
    found.map(|(_, tree_and_path)| tree_and_path)
}

/// Adds the fields of the application to the response for the file, except those that name or describe the file.
fn merge_fields(application: &FieldList, mut file: Response) -> Response {
    // A multipart response needs its own type, and a response without a body has no type.
    let has_type = !matches!(file.body, Body::Parts(_)) && file.status != Status::NOT_MODIFIED;
    let is_kept = |name: &str| {
        let is_name =
            name.eq_ignore_ascii_case(PATH_FIELD) || DISK_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field));
        let is_of_file = FILE_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field));
        !is_name && !is_of_file && (has_type || !name.eq_ignore_ascii_case("content-type"))
    };
    let kept: Vec<_> = application.iter().filter(|(name, _)| is_kept(name)).collect();
    for (name, _) in &kept {
        file.fields.remove(name);
    }
    for (name, value) in kept {
        file.fields.add(name, value);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_application_are_added_to_those_that_describe_the_file() {
        let mut application = FieldList::default();
        for (name, value) in [
            ("Content-Type", "text/csv"),
            ("Set-Cookie", "a"),
            ("ETag", "\"mine\""),
            ("x-accel-redirect", "/x"),
            ("Set-Cookie", "b"),
            ("Content-Disposition", "attachment"),
        ] {
            application.add(name, value);
        }
        let file = |body: Body| {
            Response::new(Status::OK)
                .with("Content-Type", "text/plain")
                .with("ETag", "\"file\"")
                .body(body)
        };
        let rendered = |response: Response| {
            let fields = response.fields.iter().map(|(name, value)| format!("{name}: {value}"));
            fields.collect::<Vec<_>>()
        };
        let rest = ["Set-Cookie: a", "Set-Cookie: b", "Content-Disposition: attachment"];
        let whole = rendered(merge_fields(&application, file(Body::Empty)));
        assert_eq!(whole[..2], ["ETag: \"file\"", "Content-Type: text/csv"]);
        assert_eq!(whole[2..], rest);
        let parts = rendered(merge_fields(&application, file(Body::Parts(Vec::new()))));
        assert_eq!(parts[..2], ["Content-Type: text/plain", "ETag: \"file\""]);
        assert_eq!(parts[2..], rest);
    }

    #[test]
    fn file_references_are_found_in_the_fields() {
        for (field, value, expected) in [
            ("X-Accel-Redirect", "/a", Some(FileReference::Path("/a".into()))),
            ("x-sendfile", "/srv/a", Some(FileReference::Disk("/srv/a".into()))),
            (
                "X-LIGHTTPD-send-file",
                "/srv/a",
                Some(FileReference::Disk("/srv/a".into())),
            ),
            ("X-Accel-Buffering", "no", None),
        ] {
            let response = Response::new(Status::OK).with(field, value);
            assert_eq!(referenced_file(&response.fields), expected, "{field}");
            assert_eq!(names_file(&response), expected.is_some());
        }
    }
}

//! Describes the target of a path, using the code that serves requests.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use rocknet::endpoint::{Endpoint, EndpointContext};
use rocknet::files::disk_lookup::DiskLookup;
use rocknet::files::existence;
use rocknet::files::resolve::{self, Target};
use rocknet::gateway::cgi;
use rocknet::gateway::php;
use rocknet::handlers;
use rocknet::registries::Registries;
use rocknet::route::{ServerSettings, SiteLabel};
use rocknet::routing::{LookupError, RequestTarget};
use rocknet_config::model::{Existence, Php, PhpVersion, Settings};
use rocknet_proto::status::Status;

use super::super::{Failure, search};
use super::url::Url;
use super::values::ExplainedValues;

/// Describes the target of a URL, using the code that serves requests. `settings` are the settings of the URL's
/// route, and `path` is its decoded and normalized path. `response`: returns the response of a rule that applies to a
/// file of the site.
pub(super) fn leads_to(
    settings: &Settings,
    url: &Url<'_>,
    path: &str,
    response: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Failure> {
    // Builds the endpoint without the controller, because its library would be loaded, and without the user, because
    // the check of a user needs root privileges. The handler is chosen below by the complete settings.
    let reduced_settings = Settings {
        controller: None,
        user: None,
        ..settings.clone()
    };
    let endpoint = endpoint(&reduced_settings).map_err(|error| Failure::Failed(error.to_string()))?;
    if settings.internal {
        let status = status(Status::NOT_FOUND);
        return Ok(format!(
            "{status}: `internal` files are sent only if an application names them"
        ));
    }
    let mut location = Vec::new();
    let target = RequestTarget {
        path,
        raw_path: url.path.as_bytes(),
        query: url.query.map(str::as_bytes),
        values: &ExplainedValues(url),
    };
    if let Ok(Some(code)) = endpoint.route.redirects.find(&target, &mut location) {
        return Ok(format!("redirect {code} to {}", String::from_utf8_lossy(&location)));
    }
    if let Some(text) = (handlers::choose(settings).describe)(settings) {
        return Ok(text);
    }
    let Some(tree) = &endpoint.tree else {
        return Ok(format!(
            "{}: nothing is served here, because there is no `root`",
            status(Status::NOT_FOUND)
        ));
    };
    let full_path = |relative: &[u8]| {
        let relative = String::from_utf8_lossy(relative);
        // Resolves `..` in the path of the folder. Links keep their names, so the output shows them.
        let folder = search::resolved(tree.folder());
        folder
            .join(&*relative)
            .components()
            .collect::<PathBuf>()
            .display()
            .to_string()
    };
    if endpoint.entry_for(path).name == "cgi" {
        return Ok(match cgi::program(tree, path) {
            Ok(file) => format!("the program {}", search::resolved(&file).display()),
            Err(failed) => status(failed),
        });
    }
    let target = resolve::resolve(&DiskLookup::blocking(), tree, path);
    let file = match &target {
        Target::File { relative, .. } => Some(tree.of_site(&format!("/{}", String::from_utf8_lossy(relative)))),
        Target::Script(script) => Some(script.name.to_string()),
        _ => None,
    };
    // The rules were already applied to the path of the URL.
    if let Some(text) = file.filter(|file| file != path).and_then(|file| response(&file)) {
        return Ok(text);
    }
    Ok(match target {
        Target::File { relative, .. } => format!("the file {}", full_path(&relative)),
        Target::Script(script) => {
            let script_file = String::from_utf8_lossy(&script.file()).into_owned();
            let runner = settings.php.as_ref().map(runner).unwrap_or_default();
            match &*script.path_info {
                "" => format!("the script {script_file}{runner}"),
                info => format!("the script {script_file} with the path {info}{runner}"),
            }
        }
        Target::Directory { relative } => format!("a list of the folder {}", full_path(&relative)),
        Target::WithoutSlash => "redirect 308 to the same path with a slash, because it is a folder".to_owned(),
        Target::Failed(_) if tree.root().is_err() => {
            format!(
                "nothing: the folder {} cannot be opened",
                search::resolved(tree.folder()).display()
            )
        }
        Target::Failed(failed) => match settings.errors.get(&failed.code()) {
            Some(page) => format!("{}, with the page {page}", status(failed)),
            None => status(failed),
        },
    })
}

/// Returns what a decoded path leads to in the root of a route.
pub(super) fn existence(settings: &Settings, path: &str) -> Result<Existence, LookupError> {
    let reduced_settings = Settings {
        controller: None,
        user: None,
        ..settings.clone()
    };
    let endpoint = endpoint(&reduced_settings).map_err(|_| LookupError::Failed)?;
    let Some(tree) = &endpoint.pages else {
        return Ok(Existence::Nothing);
    };
    existence::existence(&DiskLookup::blocking(), tree, path).map_err(|_| LookupError::Failed)
}

/// Builds the endpoint of a route with the default settings of a server, because no server runs here.
fn endpoint(settings: &Settings) -> Result<Endpoint, Box<dyn Error>> {
    let context = EndpointContext {
        label: &SiteLabel::default(),
        server: &Arc::new(ServerSettings::default()),
        max_cached_file: 0,
        registries: &Registries::default(),
        config_file: None,
        site_settings: settings,
        // There is no request for guards to check.
        anonymity: None,
        login_endpoints: None,
        is_unguarded: true,
        // The tree of a route that serves no files is needed only to look up whether a path exists.
        checks_existence: true,
    };
    Endpoint::new(None, settings, settings.headers.clone(), &context)
}

/// Describes the PHP that runs a script. The result is appended to the description of the script.
fn runner(php: &Php) -> String {
    let Php::Managed { version, .. } = php else {
        return format!(", run by the php-fpm at {php}");
    };
    let installed = php::installed();
    match (php::choose(&installed, *version), version) {
        (Some(found), PhpVersion::Newest) => format!(", run by PHP {}, the newest that is installed", found.version()),
        (Some(found), _) => format!(", run by PHP {}", found.version()),
        (None, PhpVersion::Newest) => ", but no PHP is installed to run it".to_owned(),
        (None, _) => format!(", but PHP {version}, which is to run it, is not installed"),
    }
}

/// Returns the code and the reason phrase of a status.
pub(super) fn status(status: Status) -> String {
    format!("{} {}", status.code(), status.reason())
}

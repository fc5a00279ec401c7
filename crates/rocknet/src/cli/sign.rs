//! `rocknet sign`: prints a signed URL, or a new key for signed URLs.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocknet::certificates::{ServerEnvironment, state_folder};
use rocknet::signed_url::{MAX_EXPIRES, PARAMETER, SignError, SignedRequest, SigningKeys, Terms, depth_of_folder};
use rocknet::url_keys::{self, generated_key_file};
use rocknet_config::model::{Auth, SignedUrls};
use rocknet_config::url_keys::is_id;
use rocknet_config::{Config, Loaded};
use rocknet_control::ban::parse_duration;
use serde::Serialize;

use super::explain::{self, url::Url};
use super::remote::print_json;
use super::{Failure, print, search};

/// Print a signed URL, for a site or route with `signed` in its `auth`
///
/// The key is the one of the route that serves the URL, by the configuration. Every client that has the URL can use it
/// until it expires.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The URL, with the host that clients use: https://example.com/downloads/a.zip
    #[arg(value_name = "URL", value_hint = clap::ValueHint::Url, required_unless_present = "new_key")]
    pub url: Option<String>,
    /// Time until the URL expires, such as 30m, 1h or 7d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    pub expires: Duration,
    /// Bind the URL to the address of a client
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
    /// Method that the URL is for; GET is also valid for HEAD
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Make the signature valid for all paths below the folder of the URL, with any query
    #[arg(long)]
    pub folder: bool,
    /// File of keys, in place of that of the configuration
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Identifier of the key; by default the first key of the file
    #[arg(long, value_name = "ID")]
    pub key: Option<String>,
    /// Print a line with a new key for a file of keys, with this identifier
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "main", conflicts_with = "url")]
    pub new_key: Option<String>,
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Output with `--json`.
#[derive(Serialize)]
struct SignedUrl<'a> {
    url: &'a str,
    /// End, in seconds of the Unix clock.
    expires: u64,
    /// Value of the query parameter `signed`, which a cookie `signed` can carry instead.
    signed: &'a str,
}

/// Output of `--new-key` with `--json`.
#[derive(Serialize)]
struct NewKey<'a> {
    key: &'a str,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(id) = &options.new_key {
        return print_new_key(id, options.json);
    }
    let written = options.url.as_deref().unwrap_or_default();
    let failed = |problem: &dyn std::fmt::Display| Failure::Usage(format!("{written}: {problem}"));
    let url = Url::parse(written).map_err(|problem| failed(&problem))?;
    let after_scheme = written.split_once("://").map_or(written, |(_, rest)| rest);
    // `Url::parse` accepts patterns such as `*.example.com`, and replaces them by a name.
    if url.host.is_empty() || after_scheme.starts_with('*') {
        return Err(failed(&"write the host that clients use: https://example.com/path"));
    }
    let without_fragment = written.split('#').next().unwrap_or_default();
    if !without_fragment.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed(
            &"percent-encode spaces and non-ASCII characters: %20 for a space",
        ));
    }
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if options.method.is_empty() || !options.method.bytes().all(is_token) {
        return Err(failed(&format_args!("{:?} is not a method", options.method)));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let expires = now.as_secs().saturating_add(options.expires.as_secs());
    if expires > MAX_EXPIRES {
        return Err(failed(
            &"the URL would expire too late: write a shorter time, such as --expires 365d",
        ));
    }
    let keys = keys(options, &url)?;
    let terms = Terms {
        expires,
        is_for_client: options.client.is_some(),
        folder_depth: match options.folder {
            true => Some(depth_of_folder(url.path.as_bytes()).ok_or_else(|| failed(&SignError::Path))?),
            false => None,
        },
    };
    let authority = match url.port {
        Some(port) => format!("{}:{port}", url.host),
        None => url.host.clone(),
    };
    let target = match url.query {
        Some(query) => format!("{}?{query}", url.path),
        None => url.path.to_owned(),
    };
    let request = SignedRequest {
        method: options.method.as_bytes(),
        authority: authority.as_bytes(),
        target: target.as_bytes(),
        client: options.client,
    };
    let value = keys
        .sign(&request, &terms, options.key.as_deref())
        .map_err(|error| failed(&error))?;
    let separator = match url.query {
        None => "?",
        // The empty query of `/path?` is followed by the parameter.
        Some("") => "",
        Some(_) => "&",
    };
    let signed = format!("{without_fragment}{separator}{PARAMETER}{value}");
    if options.json {
        return print_json(&SignedUrl {
            url: &signed,
            expires: terms.expires,
            signed: &value,
        });
    }
    print(format_args!("{signed}\n"));
    Ok(())
}

fn print_new_key(id: &str, json: bool) -> Result<(), Failure> {
    if !is_id(id) {
        let message = format!("{id:?} is not an identifier: write 1 to 32 letters, digits, `-` and `_`");
        return Err(Failure::Usage(message));
    }
    let line = url_keys::new_key(id);
    if json {
        return print_json(&NewKey { key: line.trim_end() });
    }
    print(line);
    Ok(())
}

/// Returns the keys for a URL: those of the named file, or those of its route.
fn keys(options: &Options, url: &Url<'_>) -> Result<SigningKeys, Failure> {
    let read = |path: &Path| url_keys::read(path).map_err(Failure::Failed);
    if let Some(file) = &options.key_file {
        return read(file);
    }
    let file = options.file.named_or_found()?;
    let Loaded { config, .. } =
        rocknet_config::load(&file, &ServerEnvironment::new()).map_err(Failure::Configuration)?;
    let (site, signed) = signed_urls(&config, url, &file)?;
    let state_folder = state_folder(&config);
    match signed {
        SignedUrls::File(path) => read(path),
        SignedUrls::Generated if generated_key_file(&state_folder).exists() => {
            url_keys::read_generated(&state_folder, site).map_err(Failure::Failed)
        }
        SignedUrls::Generated => Err(Failure::Failed(format!(
            "{} does not exist, or is hidden from this account: start the server first, and run this command as root or as \
             the account of the server",
            generated_key_file(&state_folder).display()
        ))),
    }
}

/// Returns the name of the site that serves a URL, and the origin of the keys of its route. `file`: path of the
/// configuration, for messages.
fn signed_urls<'c>(config: &'c Config, url: &Url<'_>, file: &Path) -> Result<(&'c str, &'c SignedUrls), Failure> {
    let shown = search::absolute(file);
    let Some((site, settings)) = explain::site_and_settings(config, url) else {
        let message = format!("no site of {} answers {}", shown.display(), url.written);
        return Err(Failure::Failed(message));
    };
    match &settings.auth {
        Some(Auth::Signed(signed)) => Ok((&site.name, signed)),
        _ => Err(Failure::Failed(format!(
            "the route of {} has no signed URLs: write auth = {{ signed = true }} in {}, or name a file by --key-file",
            url.written,
            shown.display()
        ))),
    }
}

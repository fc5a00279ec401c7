//! `rocknet explain`: shows the site and route of a URL, what the URL leads to, and the configuration lines that apply
//! to it. Guards are not applied, because they depend on the client.

mod rules;
mod target;
mod text;
pub(super) mod url;
mod values;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rocknet::certificates::ServerEnvironment;
use rocknet::routing::RuleOutcome;
use rocknet::site::redirect_port;
use rocknet_config::environment::Environment;
use rocknet_config::explain::{self, EffectiveSetting, Explanation};
use rocknet_config::model::{CertificateSource, Listen, Settings, Site, SourceSpan};
use rocknet_config::{Config, Loaded, Severity};
use rocknet_control::explanation::{ConfigPosition, ExplainedSetting, UrlExplanation};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};
use rocknet_proto::status::Status;

use self::rules::{apply_rules, responded, response_for_file};
use self::target::{leads_to, status};
use self::text::render;
use self::url::Url;
use super::remote::print_json;
use super::{Failure, print, search};

/// Show the site, route and configuration lines of a URL, and what it leads to
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The URL: http://example.com:8080/path, or example.com/path for any port, or /path for the site that answers to
    /// every name
    #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub url: String,
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Address of the client, for rules with the condition `client`
    #[arg(long, value_name = "ADDRESS", default_value_t = DEFAULT_CLIENT)]
    pub client: IpAddr,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Address of the client unless another is given.
const DEFAULT_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub fn run(options: &Options) -> Result<(), Failure> {
    let url = Url::parse(&options.url).map_err(|problem| Failure::Usage(format!("{}: {problem}", options.url)))?;
    let file = options.file.named_or_found()?;
    let Loaded { config, .. } =
        rocknet_config::load(&file, &ServerEnvironment::new()).map_err(Failure::Configuration)?;
    let explanation = explanation(
        &config,
        &url,
        options.client,
        &format!(" of {}", search::absolute(&file).display()),
    )?;
    if options.json {
        return print_json(&explanation);
    }
    print(render(&explanation));
    Ok(())
}

/// Explains a URL for the control API, by the configuration in use.
///
/// # Errors
///
/// [`Failure::Usage`] for a text that is not a URL, and [`Failure::Failed`] if no site serves the URL.
pub fn explained(config: &Config, url: &str) -> Result<UrlExplanation, Failure> {
    let parsed = Url::parse(url).map_err(|problem| Failure::Usage(format!("{url}: {problem}")))?;
    explanation(config, &parsed, DEFAULT_CLIENT, "")
}

/// Explains a URL for a client. `origin`: words that follow “no site” in the error, such as ` of
/// /etc/rocknet/rocknet.toml`.
fn explanation(config: &Config, url: &Url<'_>, client: IpAddr, origin: &str) -> Result<UrlExplanation, Failure> {
    let UrlAnalysis { found, leads_to } = analyse(config, url, client, origin)?;
    let leads_to = match https_location(found.site, url) {
        Some(location) => format!("redirect 308 to {location}, which leads to {leads_to}"),
        None => leads_to,
    };
    let settings = found.route.map_or(&found.site.settings, |route| &route.settings);
    Ok(UrlExplanation {
        leads_to,
        site: found.site.name.clone(),
        site_position: Some(position(&found.site.span)),
        route: found.route.map(|route| route.pattern.to_string()),
        route_position: found.route.map(|route| position(&route.span)),
        problems: certificate_problems(found.site),
        settings: (found.settings.iter())
            .map(|setting| explained_setting(setting, Some(settings)))
            .collect(),
    })
}

/// Converts a setting. The values of `root` and `alias` are shown as the absolute paths of the folders in `settings`;
/// without `settings`, all values stay unchanged.
pub fn explained_setting(setting: &EffectiveSetting, settings: Option<&Settings>) -> ExplainedSetting {
    let folder = match (setting.key.as_str(), settings) {
        ("root", Some(settings)) => settings.document_root().map(Path::to_owned),
        ("alias", Some(settings)) => settings.alias_target(),
        _ => None,
    };
    ExplainedSetting {
        value: match folder {
            Some(folder) => format!("{:?}", search::resolved(&folder)),
            None => setting.value.clone(),
        },
        key: setting.key.clone(),
        position: setting.span.as_ref().map(position),
    }
}

/// Converts a position.
pub fn position(span: &SourceSpan) -> ConfigPosition {
    ConfigPosition {
        file: span.file.clone(),
        line: span.line,
    }
}

/// Site, route and settings of a URL, and a description of what it leads to.
struct UrlAnalysis<'c> {
    found: Explanation<'c>,
    leads_to: String,
}

/// Finds the route of a URL and applies the rules of its site. Describes what the URL leads to for a client that the
/// guards admit.
fn analyse<'c>(config: &'c Config, url: &Url<'_>, client: IpAddr, origin: &str) -> Result<UrlAnalysis<'c>, Failure> {
    let decoded_path = decoded(url.path);
    let Some(found) = find(config, url, decoded_path.as_deref().unwrap_or("/")) else {
        return Err(Failure::Failed(format!("no site{origin} answers {}", url.written)));
    };
    if let Err(error) = decoded_path {
        let status = status(Status::new(error.status()).unwrap_or(Status::BAD_REQUEST));
        let leads_to = format!("{status}: {error}");
        return Ok(UrlAnalysis { found, leads_to });
    }
    let leads_to = match apply_rules(found.site, url, client)? {
        RuleOutcome::Untouched => after_rules(&found, url, client)?,
        // This outcome cannot occur, because the lookup may block here.
        RuleOutcome::NeedsLookup(path) => format!("a rule that depends on {path}"),
        RuleOutcome::Respond { status: code, .. } => format!("{}, by a rule", responded(code)),
        RuleOutcome::NoHost => {
            let status = status(Status::BAD_REQUEST);
            format!("{status}: a rule needs the host of the request")
        }
        RuleOutcome::Redirect { status, location } => {
            format!("redirect {status} to {}, by a rule", String::from_utf8_lossy(&location))
        }
        RuleOutcome::Rewritten(target) => {
            let target = String::from_utf8_lossy(&target).into_owned();
            let (path, query) = target
                .split_once('?')
                .map_or((&*target, None), |(path, query)| (path, Some(query)));
            let rewritten = Url {
                host: url.host.clone(),
                path,
                query,
                ..*url
            };
            // A site is found again, because host and port are the same.
            let Some(mut after) = find(config, &rewritten, decoded(path).as_deref().unwrap_or("/")) else {
                return Ok(UrlAnalysis {
                    found,
                    leads_to: format!("{target}, by a rule"),
                });
            };
            let leads_to = format!(
                "{}, because a rule rewrites the URL to {target}",
                after_rules(&after, &rewritten, client)?
            );
            // Rules, whose keys begin with `rule `, are listed for the requested path, and all other settings for the
            // rewritten one.
            let rules = found
                .settings
                .into_iter()
                .filter(|setting| setting.key.starts_with("rule "));
            let others = after
                .settings
                .drain(..)
                .filter(|setting| !setting.key.starts_with("rule "));
            after.settings = rules.chain(others).collect();
            let found = after;
            return Ok(UrlAnalysis { found, leads_to });
        }
    };
    Ok(UrlAnalysis { found, leads_to })
}

/// Returns the https:// URL to which a request in clear text is redirected. `None` if the URL does not begin with
/// http://, or if its site does not redirect.
fn https_location(site: &Site, url: &Url<'_>) -> Option<String> {
    // `http://` has 7 bytes.
    let scheme = url.written.get(..7)?;
    // A URL without a port may be requested at every TCP address of the site.
    let is_requested =
        |listen: &Listen| matches!(listen, Listen::Tcp { port, .. } if url.port.is_none_or(|own| own == *port));
    let is_in_clear = |listen: &Listen| is_requested(listen) && !site.secure.contains(listen);
    if !scheme.eq_ignore_ascii_case("http://") || !site.listen.iter().any(is_in_clear) {
        return None;
    }
    let port = match redirect_port(site)? {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let query = url.query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("https://{}{port}{}{query}", url.host, url.path))
}

/// Returns the problems with the certificates of a site.
pub fn certificate_problems(site: &Site) -> Vec<String> {
    let Some(tls) = &site.tls else { return Vec::new() };
    let mut problems = Vec::new();
    let environment = ServerEnvironment::new();
    for fault in tls.client.iter().flat_map(|client| {
        let authorities = environment.ca_certificates_error(&client.ca);
        authorities
            .into_iter()
            .chain(environment.revocation_lists_error(&client.crl))
    }) {
        problems.push(format!("not served under TLS: {fault}"));
    }
    if let CertificateSource::Files(files) = &tls.source {
        for fault in ServerEnvironment::new().certificate_findings(files, &site.names) {
            let what = match fault.severity {
                Severity::Error => "not served under TLS: ",
                Severity::Warning => "",
            };
            problems.push(format!("{what}{}; {}", fault.message, fault.help));
        }
    }
    problems
}

/// Decodes and normalizes a path as the server does.
fn decoded(path: &str) -> Result<String, PathError> {
    match SafePath::parse(path.as_bytes()) {
        Ok(path) => Ok(path.as_str().to_owned()),
        // No file can have this path, but a route, a redirect or a fallback may apply to it.
        Err(PathError::Unmatchable) => SafePath::for_rules(path.as_bytes()),
        Err(error) => Err(error),
    }
}

/// Describes the response to a URL to which no rule responds.
fn after_rules(found: &Explanation<'_>, url: &Url<'_>, client: IpAddr) -> Result<String, Failure> {
    let settings = found.route.map_or(&found.site.settings, |route| &route.settings);
    match decoded(url.path) {
        Ok(path) => leads_to(settings, url, &path, &|file| {
            response_for_file(found.site, url, client, file)
        }),
        Err(error) => Ok(format!(
            "{}: {error}",
            status(Status::new(error.status()).unwrap_or(Status::BAD_REQUEST))
        )),
    }
}

/// Returns the site of a URL, and the settings of its route, before rules apply; `None` if no site serves the URL.
pub(super) fn site_and_settings<'c>(config: &'c Config, url: &Url<'_>) -> Option<(&'c Site, &'c Settings)> {
    let found = find(config, url, decoded(url.path).as_deref().unwrap_or("/"))?;
    let settings = found.route.map_or(&found.site.settings, |route| &route.settings);
    Some((found.site, settings))
}

/// Finds the site, the route and the settings of a URL whose decoded path is `path`; `None` if no site serves the URL.
fn find<'c>(config: &'c Config, url: &Url<'_>, path: &str) -> Option<Explanation<'c>> {
    if let Some(found) = explain::explain(config, &url.host, url.port, path) {
        return Some(found);
    }
    // The only site on a port serves every name there.
    let port = url.port?;
    let listens = |listen: &Listen| matches!(listen, Listen::Tcp { port: own, .. } if *own == port);
    let mut sites = config.sites.iter().filter(|site| site.listen.iter().any(listens));
    let (site, None) = (sites.next()?, sites.next()) else {
        return None;
    };
    let route = explain::route(site, path);
    Some(Explanation {
        site,
        route,
        settings: explain::effective_settings(site, route),
    })
}

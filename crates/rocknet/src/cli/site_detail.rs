//! A site with the effective settings of its routes, for the control API.

use rocknet::report;
use rocknet_config::explain;
use rocknet_config::model::{Route, Settings, Site};
use rocknet_control::SiteSummary;
use rocknet_control::explanation::ExplainedSetting;
use rocknet_control::route::{RouteDetail, SiteDetail};

use super::explain::{certificate_problems, explained_setting, position};

/// Maximum number of routes in a response, each of which has some dozen settings.
const MAX_ROUTES: usize = 1000;

/// Describes a site by the configuration in use. Waits for the disk, from which certificates are read.
pub fn of_site(site: &Site, summary: SiteSummary) -> SiteDetail {
    let settings = settings(site, None);
    let route = |route: &Route| RouteDetail {
        summary: report::route_summary(route),
        leads_to: leads_to(&route.settings),
        // Settings that equal a setting of the site are left out.
        settings: self::settings(site, Some(route))
            .into_iter()
            .filter(|setting| !settings.contains(setting))
            .collect(),
    };
    SiteDetail {
        summary,
        position: Some(position(&site.span)),
        problems: certificate_problems(site),
        rules: explain::all_rules(site)
            // Rules have no `root` or `alias` to show as an absolute path.
            .map(|setting| explained_setting(&setting, None))
            .collect(),
        leads_to: leads_to(&site.settings),
        routes: site.routes.iter().take(MAX_ROUTES).map(route).collect(),
        settings,
    }
}

/// Returns the effective settings of a route, or of the site itself if `route` is `None`.
fn settings(site: &Site, route: Option<&Route>) -> Vec<ExplainedSetting> {
    let settings = route.map_or(&site.settings, |route| &route.settings);
    let effective = explain::effective_settings(site, route);
    effective
        .iter()
        .map(|setting| explained_setting(setting, Some(settings)))
        .collect()
}

/// Describes the handler that the settings choose; `None` if the target depends on the path, or if nothing is served.
fn leads_to(settings: &Settings) -> Option<String> {
    (rocknet::handlers::choose(settings).describe)(settings)
}

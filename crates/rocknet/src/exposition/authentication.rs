//! Metric families of the guards that identify clients: forward authentication, logins by OpenID Connect, and signed
//! URLs.

use crate::metrics::AuthCounters;
use crate::outcomes::SiteOutcomes;

use super::page::Page;

/// Requests to the routes of each site with such a guard.
#[derive(Debug, Clone, Default)]
pub struct Authentication {
    forward: Vec<SiteOutcomes>,
    logins: Vec<SiteOutcomes>,
    rejected_sessions: Vec<SiteOutcomes>,
    signed_urls: Vec<SiteOutcomes>,
}

impl Authentication {
    /// Adds up the counters of all workers.
    pub fn of(counters: &AuthCounters) -> Authentication {
        Authentication {
            forward: counters.forward.by_site(),
            logins: counters.logins.by_site(),
            rejected_sessions: counters.sessions.by_site(),
            signed_urls: counters.signed_urls.by_site(),
        }
    }
}

/// Writes the metric families.
pub fn authentication(page: &mut Page, authentication: &Authentication) {
    let Authentication {
        forward,
        logins,
        rejected_sessions,
        signed_urls,
    } = authentication;
    let help = "Queries to the authorization service of `auth.forward`, by outcome.";
    outcomes(page, "rocknet_forward_auth_queries", help, "outcome", forward);
    let help = "Logins by `auth.oidc`, by outcome; `begun` counts redirects to the provider.";
    outcomes(page, "rocknet_oidc_logins", help, "outcome", logins);
    let help = "Requests with a session of `auth.oidc` that does not admit them, by reason.";
    outcomes(
        page,
        "rocknet_oidc_rejected_sessions",
        help,
        "reason",
        rejected_sessions,
    );
    let help = "Verifications of URLs by `auth.signed`, by outcome.";
    outcomes(page, "rocknet_signed_urls", help, "outcome", signed_urls);
}

/// Writes a metric family of counters by site and outcome. `label`: label of the outcome.
pub fn outcomes(page: &mut Page, name: &str, help: &str, label: &'static str, sites: &[SiteOutcomes]) {
    page.family(name, "counter", "", help);
    let sample = format!("{name}_total");
    for (site, outcomes) in sites {
        for (outcome, count) in outcomes {
            page.sample(&sample, &[("site", site), (label, outcome)], count);
        }
    }
}

//! Finds placeholders in a configuration.

use super::auth::Auth;
use super::config::Config;
use super::forward_auth::{ForwardAuth, SignIn};
use super::log::AccessFormat;
use super::rule::RuleAction;
use super::settings::Settings;
use super::site::Site;

impl Config {
    /// Returns true if a site contains the placeholder `name`, which is passed without braces. An escaped placeholder,
    /// `{{name}}`, counts too. The server makes identifiers of requests only if a site contains `{request.id}`.
    ///
    /// These texts are searched: those of rules, `log.format`, `headers`, `redirects`, `key` of `limit`, `headers` of
    /// `proxy` and of `auth.certificate`, and `sign_in` of `auth.forward`.
    pub fn has_placeholder(&self, name: &str) -> bool {
        let placeholder = format!("{{{name}}}");
        self.sites.iter().any(|site| site.has_text(&placeholder))
    }
}

impl Site {
    /// Returns true if one of the searched texts contains `part`.
    fn has_text(&self, part: &str) -> bool {
        let in_rule = |action: &RuleAction| match action {
            RuleAction::Pass => false,
            RuleAction::Rewrite(to) | RuleAction::Redirect { to, .. } => to.contains(part),
            RuleAction::Respond { body, .. } => body.as_ref().is_some_and(|body| body.contains(part)),
        };
        let routes = self.routes.iter().map(|route| &route.settings);
        std::iter::once(&self.settings)
            .chain(routes)
            .any(|settings| settings.has_text(part))
            || matches!(&self.access.format, AccessFormat::Custom(line) if line.contains(part))
            || self.rules.iter().any(|rule| in_rule(&rule.action))
    }
}

impl Settings {
    /// Returns true if one of the searched texts contains `part`.
    fn has_text(&self, part: &str) -> bool {
        let mut keys = self.limits.iter().filter_map(|limit| limit.key.as_ref());
        self.headers.values().any(|value| value.contains(part))
            || keys.any(|key| key.contains(part))
            || self.redirects.iter().any(|redirect| redirect.to.contains(part))
            || self
                .proxy
                .iter()
                .any(|proxy| proxy.headers.values().any(|value| value.contains(part)))
            || self.auth.as_ref().is_some_and(|auth| auth.has_text(part))
    }
}

impl Auth {
    /// Returns true if one of the searched texts contains `part`.
    fn has_text(&self, part: &str) -> bool {
        match self {
            Auth::Forward(ForwardAuth { sign_in, .. }) => {
                matches!(sign_in, Some(SignIn::Target(target)) if target.contains(part))
            }
            Auth::Certificate(rule) => rule.headers.values().any(|value| value.contains(part)),
            Auth::Passwords(_) | Auth::Signed(_) | Auth::Oidc(_) => false,
        }
    }
}

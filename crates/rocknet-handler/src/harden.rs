//! A filter that adds the header fields by which browsers limit what attackers can do with the pages of a site.

use rocknet_config::template::Values;
use rocknet_proto::status::Status;

use crate::filter::{DeferredFilter, Filter, FilterContext, Phase};
use crate::response::{FieldList, Response};
use crate::route::Route;

const CONTENT_SECURITY_POLICY: &str = "Content-Security-Policy";

/// Fields that are added unless the response has them. None of them affects a common page within its own site. A policy
/// for the resources that a page may load has to be written for each site.
const FIELDS: [(&str, &str); 4] = [
    // A file is never taken for a script because of its content (Fetch standard §3.6).
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    // Windows that the page opens, such as those of login and payment services, still reach it.
    ("Cross-Origin-Opener-Policy", "same-origin-allow-popups"),
    (CONTENT_SECURITY_POLICY, "base-uri 'self'; frame-ancestors 'self'"),
];

/// Fields that reveal which program produced a response.
const REVEALING: [&str; 3] = ["X-Powered-By", "X-AspNet-Version", "X-Generator"];

/// Adds the fields to the responses of routes with `harden`.
pub struct Harden;

impl Filter for Harden {
    fn phase(&self) -> Phase {
        Phase::Harden
    }

    fn apply_to_head(&self, route: &Route, _values: Option<&dyn Values>, _status: Status, fields: &mut FieldList) {
        add(route, fields);
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        add(context.route, &mut response.fields);
        None
    }
}

/// Removes revealing fields, and adds the fields that the response does not have. The fields of an application
/// therefore take precedence. The fields of `headers` do too, because they are set in a later phase.
fn add(route: &Route, fields: &mut FieldList) {
    if !route.harden {
        return;
    }
    for name in REVEALING {
        fields.remove(name);
    }
    // A policy of the application decides about frames (`frame-ancestors`). Old browsers, which do not know
    // `frame-ancestors`, would apply `X-Frame-Options` instead.
    let has_policy = fields.value(CONTENT_SECURITY_POLICY).is_some();
    if !has_policy && fields.value("X-Frame-Options").is_none() {
        fields.add("X-Frame-Options", "SAMEORIGIN");
    }
    // Browsers ignore `X-Frame-Options` if a policy has `frame-ancestors`. `frame-ancestors 'self'` would therefore
    // replace another value of the application, such as `DENY`, so the policy is left out.
    let has_other_frame_options = fields
        .value("X-Frame-Options")
        .is_some_and(|value| !value.eq_ignore_ascii_case("SAMEORIGIN"));
    for (name, value) in FIELDS {
        if fields.value(name).is_none() && !(has_other_frame_options && name == CONTENT_SECURITY_POLICY) {
            fields.add(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use rocknet_config::model::Settings;

    use super::*;
    use crate::route::{ServerSettings, SiteLabel};

    /// Returns the fields of a response with the fields `own`, after the filter.
    fn filtered(harden: bool, own: &[(&str, &str)]) -> Vec<(String, String)> {
        let settings = Settings {
            harden,
            ..Settings::default()
        };
        let route = Route::new(
            &settings,
            BTreeMap::new(),
            SiteLabel::default(),
            Arc::new(ServerSettings::default()),
        );
        let mut fields = FieldList::default();
        for (name, value) in own {
            fields.add(name, value);
        }
        add(&route.unwrap(), &mut fields);
        fields
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn fields_are_added_to_a_response_without_them() {
        let fields = filtered(true, &[("X-Powered-By", "PHP/8.2"), ("Content-Type", "text/html")]);
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "Content-Type",
            "X-Frame-Options",
            "X-Content-Type-Options",
            "Referrer-Policy",
            "Cross-Origin-Opener-Policy",
            "Content-Security-Policy",
        ];
        assert_eq!(names, expected);
        assert_eq!(filtered(false, &[("X-Powered-By", "a")]).len(), 1);
    }

    #[test]
    fn fields_of_the_application_take_precedence() {
        let own = [
            ("content-security-policy", "default-src 'self'"),
            ("Referrer-Policy", "no-referrer"),
        ];
        let fields = filtered(true, &own);
        for (name, value) in own {
            let of_name: Vec<_> = fields
                .iter()
                .filter(|field| field.0.eq_ignore_ascii_case(name))
                .collect();
            assert_eq!(of_name, [&(name.to_owned(), value.to_owned())]);
        }
        assert!(!fields.iter().any(|(name, _)| name == "X-Frame-Options"), "{fields:?}");
        // A page that is forbidden in all frames remains so.
        let fields = filtered(true, &[("X-Frame-Options", "DENY")]);
        assert!(
            !fields.iter().any(|(name, _)| name == CONTENT_SECURITY_POLICY),
            "{fields:?}"
        );
    }
}

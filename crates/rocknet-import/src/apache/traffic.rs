//! Translates directives of modules that cache responses or limit traffic: `mod_cache`, `mod_ratelimit`, `mod_evasive`
//! and `mod_qos`.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::settings::Settings;
use crate::value::Value;

/// Directives of `mod_ratelimit` in one section. `SetEnv rate-limit` has an effect only with the filter `RATE_LIMIT`.
#[derive(Default)]
pub(super) struct BandwidthDraft {
    filter: Option<Directive>,
    rate: Option<Directive>,
    /// KiB that are sent before the rate applies.
    burst: Option<u64>,
}

impl BandwidthDraft {
    /// Reads a directive. Returns false if it does not concern the bandwidth.
    pub fn read(&mut self, directive: &Directive) -> bool {
        let is_set = directive.is("SetEnv");
        if directive.is("SetOutputFilter") && directive.argument(0).eq_ignore_ascii_case("RATE_LIMIT") {
            self.filter = Some(directive.clone());
        } else if is_set && directive.argument(0) == "rate-limit" {
            self.rate = Some(directive.clone());
        } else if is_set && directive.argument(0) == "rate-initial-burst" {
            self.burst = directive.argument(1).parse().ok();
        } else {
            return false;
        }
        true
    }

    /// Writes the limit to the settings of the section.
    pub fn finish(self, settings: &mut Settings, notes: &mut dyn Notes) {
        let advice = "write limit = { bandwidth = \"400KiB/s\" }, with the rate of the variable `rate-limit`: docs/rate-limits.md";
        let (filter, rate) = match (self.filter, self.rate) {
            (Some(filter), Some(rate)) => (filter, rate),
            (None, Some(rate)) => return notes.unneeded(&rate, "the filter `RATE_LIMIT` is not set here"),
            (Some(filter), None) => return notes.skip(&filter, advice),
            (None, None) => return,
        };
        match rate.argument(1).parse::<u64>() {
            Ok(kib @ 1..=MAX_KIB) => {
                let mut limit = vec![("bandwidth".to_owned(), Value::Text(format!("{kib}KiB/s")))];
                if let Some(kib) = self.burst.filter(|kib| (1..=MAX_KIB).contains(kib)) {
                    limit.push(("after".to_owned(), Value::Text(format!("{kib}KiB"))));
                }
                settings.set("limit", Value::Table(limit), filter.line);
            }
            _ => notes.skip(&rate, advice),
        }
    }
}

/// Maximum of a bandwidth or burst that is translated, in KiB: 1 TiB, the maximum of `bandwidth`.
const MAX_KIB: u64 = 1 << 30;

/// Translates `CacheEnable` and `CacheDisable` of a host. Returns false for other directives.
pub(super) fn cache(directive: &Directive, site: &mut Site) -> bool {
    let path = match directive.words()[..] {
        // `CacheEnable disk /` names the store first.
        [_, path] if directive.is("CacheEnable") => path,
        [_] if directive.is("CacheEnable") => "/",
        [path] if directive.is("CacheDisable") => path,
        _ => return false,
    };
    if directive.is("CacheEnable") && path == "/" {
        site.settings.set("cache", Value::Flag(true), directive.line);
        let message = "responses of applications are stored in memory, and only those with a lifetime, which `ttl` can set: docs/cache.md";
        site.differs(directive, message);
    } else {
        let key = if directive.is("CacheEnable") { "true" } else { "false" };
        site.skip(
            directive,
            &format!("write `cache = {key}` into the route of the application: docs/cache.md"),
        );
    }
    true
}

/// Returns the advice for a directive of `mod_evasive` or `mod_qos`; `None` for other directives.
pub(super) fn advice(directive: &Directive) -> Option<&'static str> {
    let name = directive.name.to_ascii_lowercase();
    if ["dospage", "dossite"].iter().any(|start| name.starts_with(start)) {
        return Some("write limit = { rate = \"10/s\", burst = 20 } into the site or route: docs/rate-limits.md");
    }
    if name.starts_with("dos") {
        return Some("`limit` has a table and log messages of its own: docs/rate-limits.md");
    }
    if name.starts_with("qs_") {
        return Some(match name.contains("conn") || name.contains("limitdefault") {
            true => "write limit = { connections = 20 } into the site or route: docs/rate-limits.md",
            false => {
                "write limit = \"10/s\" or limit = { connections = 20 } into the site or route: docs/rate-limits.md"
            }
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_and_its_variable_become_a_limit() {
        for (text, expected, count) in [
            (
                "SetOutputFilter RATE_LIMIT\nSetEnv rate-limit 400",
                Some("{ bandwidth = \"400KiB/s\" }"),
                0,
            ),
            (
                "SetEnv rate-limit 1\nSetEnv rate-initial-burst 512\nSetOutputFilter RATE_LIMIT",
                Some("{ bandwidth = \"1KiB/s\", after = \"512KiB\" }"),
                0,
            ),
            ("SetEnv rate-limit 400", None, 1),
            ("SetOutputFilter RATE_LIMIT", None, 1),
            ("SetOutputFilter RATE_LIMIT\nSetEnv rate-limit 0", None, 1),
        ] {
            let mut draft = BandwidthDraft::default();
            for directive in super::super::read(text).unwrap() {
                assert!(draft.read(&directive));
            }
            let (mut settings, mut notes) = (Settings::default(), Vec::new());
            draft.finish(&mut settings, &mut notes);
            let mut out = String::new();
            if let Some(limit) = settings.get("limit") {
                limit.write(&mut out);
            }
            assert_eq!(
                (out.as_str(), notes.len()),
                (expected.unwrap_or_default(), count),
                "{text}"
            );
        }
    }
}

//! A filter that adds the `headers` of the configuration, and the field `Server`.

use rocknet_config::template::Values;
use rocknet_proto::fields::{ConstField, KnownField};
use rocknet_proto::status::Status;

use crate::filter::{DeferredFilter, Filter, FilterContext, Phase};
use crate::response::{FieldList, Response};
use crate::route::Route;
use crate::values::field_value;

/// Value of `Server`. It contains no version, because a version would only help attackers to find outdated servers.
pub const SERVER: &str = "RockNet";
static SERVER_LINE: ConstField = ConstField::new(KnownField::Server, "Server: RockNet\r\n");

/// Adds the fields of the route to responses.
pub struct Headers;

impl Filter for Headers {
    fn phase(&self) -> Phase {
        Phase::Headers
    }

    fn apply_to_head(&self, route: &Route, values: Option<&dyn Values>, status: Status, fields: &mut FieldList) {
        apply(route, values, status, fields);
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        apply(context.route, context.values, response.status, &mut response.fields);
        None
    }
}

/// Adds `Server` and the fields of the route. An empty value, also that of a template, removes the field, even
/// `Server`. Errors get no fields that permit caching, because an error must not be cached for as long as the resource
/// itself. `values`: `None` if no request is known; templates are then left out.
fn apply(route: &Route, values: Option<&dyn Values>, status: Status, fields: &mut FieldList) {
    apply_server(fields);
    for (name, template) in &route.headers {
        match (template.as_constant(), values) {
            (Some(""), _) => fields.remove(name),
            (Some(value), _) => set(name, value, status, fields),
            (None, Some(values)) => match field_value(template, values) {
                value if value.is_empty() => fields.remove(name),
                value => set(name, &value, status, fields),
            },
            (None, None) => {}
        }
    }
}

/// Sets a field, unless it permits an error to be cached.
fn set(name: &str, value: &str, status: Status, fields: &mut FieldList) {
    if status.code() < 400 || !permits_caching(name, value) {
        fields.set(name, value);
    }
}

/// Returns true if the field permits clients or caches to store a response (RFC 9111 §5.2.2, §5.3; RFC 9213).
fn permits_caching(name: &str, value: &str) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("Expires") {
        return true;
    }
    if !is("Cache-Control") && !is("CDN-Cache-Control") && !is("Surrogate-Control") {
        return false;
    }
    value.split(',').any(|directive| {
        let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "public" | "immutable" => true,
            "max-age" | "s-maxage" => argument.trim().trim_matches('"') != "0",
            _ => false,
        }
    })
}

/// Adds `Server` unless it is set. For a response whose route is unknown, the server calls this function instead of the
/// filters.
pub fn apply_server(fields: &mut FieldList) {
    if !fields.contains(KnownField::Server) {
        fields.add_const(&SERVER_LINE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_added_unless_it_is_set() {
        let mut fields = FieldList::default();
        apply_server(&mut fields);
        assert_eq!(fields.value("server"), Some(SERVER));
        fields.set("Server", "other");
        apply_server(&mut fields);
        assert_eq!(fields.iter().collect::<Vec<_>>(), [("Server", "other")]);
    }

    #[test]
    fn only_fields_that_permit_caching_are_left_out_of_errors() {
        let rows = [
            ("Cache-Control", "public, max-age=31536000, immutable", true),
            ("cache-control", "MAX-AGE=60", true),
            ("Cache-Control", "private, max-age=60", true),
            ("Cache-Control", "s-maxage=\"9\"", true),
            ("CDN-Cache-Control", "max-age=60", true),
            ("Expires", "Thu, 01 Jan 2099 00:00:00 GMT", true),
            ("Cache-Control", "no-store", false),
            ("Cache-Control", "no-cache, max-age=0", false),
            ("Cache-Control", "no-transform", false),
            ("X-Frame-Options", "max-age=60", false),
            ("Strict-Transport-Security", "max-age=60", false),
        ];
        for (name, value, expected) in rows {
            assert_eq!(permits_caching(name, value), expected, "{name}: {value}");
        }
    }
}

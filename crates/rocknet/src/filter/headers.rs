//! The `headers` of the configuration, and the fields that every answer has.

use crate::response::FieldList;
use crate::scope::Scope;

/// What the server calls itself; without a version, which would only help those who look for old ones.
pub const SERVER: &str = "RockNet";

/// Adds `Server` and what the scope says. An empty value removes the field, `Server` too.
pub fn apply(scope: &Scope, fields: &mut FieldList) {
    apply_server(fields);
    for (name, value) in &scope.headers {
        if value.is_empty() {
            fields.remove(name);
        } else {
            fields.set(name.clone(), value.clone());
        }
    }
}

/// For answers that belong to no site.
pub fn apply_server(fields: &mut FieldList) {
    if fields.value("Server").is_none() {
        fields.add("Server", SERVER);
    }
}

//! Error message for an invalid query of a request.

/// Returns the message for a parameter that an endpoint does not accept, or whose value it does not accept.
pub(crate) fn invalid(name: &str) -> String {
    format!("the parameter `{name}` of the query is not known here, or its value is not valid")
}

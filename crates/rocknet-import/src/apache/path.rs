//! Patterns of the paths of `<Location>`, `ProxyPass` and `Redirect`.

/// Returns the patterns of a path with everything below it: `/a` and `/a/*` for `/a`, but only `/a/*` for `/a/`.
pub(super) fn prefix(path: &str) -> Vec<String> {
    match path {
        "/" | "" => vec!["/*".to_owned()],
        path => match path.strip_suffix('/') {
            Some(prefix) => vec![format!("{prefix}/*")],
            None => vec![path.to_owned(), format!("{path}/*")],
        },
    }
}

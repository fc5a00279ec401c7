//! Error pages that are the output of scripts, which `errors` does not support.

/// Message about an error page that is the output of a script.
pub(crate) const MESSAGE: &str = "`errors` takes files, not scripts: paths without a file go to the front \
                                  controller, and `rewrite` of a rule in place of `respond` sends a page of the \
                                  application";

/// Returns true if the path of an error page leads to a PHP script.
pub(crate) fn is_script(page: &str) -> bool {
    let path = page.split('?').next().unwrap_or_default();
    path.ends_with(".php") || path.contains(".php/")
}

//! Runs forward authentication with oauth2-proxy as the authorization service, and logins by OpenID Connect with the
//! providers mockoidc and oidc-provider.

mod browser;
mod checks;
mod forward;
mod oidc;
mod programs;

use self::checks::Checks;
use self::programs::{MockProvider, NodeProvider, OAUTH2_PROXY};
use crate::Failure;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Runs all checks. `results`: the folder that gets a page with the results.
pub fn run(program: &Path, results: Option<&Path>) -> Result<(), Failure> {
    let mut parts = Vec::new();
    let proxy_version = OAUTH2_PROXY.version().trim_start_matches('v');
    let title = format!("`auth.forward` with oauth2-proxy {proxy_version} and mockoidc");
    parts.push((title, forward::run(program)?));
    let application = MockProvider::start()?;
    let title = "`auth.oidc` with mockoidc".to_owned();
    parts.push((title, oidc::run(program, &application, &application)?));
    let provider = NodeProvider::start(&oidc::callback_url(), &oidc::after_logout_url())?;
    let title = format!("`auth.oidc` with oidc-provider {}", provider.version);
    parts.push((title, oidc::run(program, &application, &provider)?));
    if let Some(folder) = results {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("auth.md"), to_page(&parts))?;
    }
    Ok(())
}

/// Returns the page with the checks. All of them have passed.
fn to_page(parts: &[(String, Checks)]) -> String {
    let mut page = "# Conformance of forward authentication and logins\n\n\
         `cargo xtask conform auth --results docs/conformance` runs [forward authentication](../forward-auth.md) and\n\
         [logins by OpenID Connect](../oidc.md) with programs of other projects, and writes this page. curl is the \
         browser. All\nchecks pass.\n"
        .to_owned();
    for (title, checks) in parts {
        let _ = write!(page, "\n## {title}\n\n");
        for check in checks.passed() {
            let _ = writeln!(page, "- {check}");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_each_check_once() {
        let mut checks = Checks::default();
        for check in ["one", "two", "one"] {
            checks.pass(check);
        }
        let page = to_page(&[("`auth.oidc` with a provider".to_owned(), checks)]);
        assert!(
            page.ends_with("\n## `auth.oidc` with a provider\n\n- one\n- two\n"),
            "{page}"
        );
    }
}

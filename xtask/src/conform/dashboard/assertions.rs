//! Conditions of the tests: in the page, and in the configuration file.

use super::session::DashboardSession;
use super::site::DashboardSite;
use crate::Failure;

/// Fails if an expression is not true in the page.
pub fn expect(session: &mut DashboardSession, condition: &str) -> Result<(), Failure> {
    match session.browser.evaluate(condition)? {
        found if found == true => Ok(()),
        _ => Err(format!("`{condition}` is false").into()),
    }
}

/// Fails if the configuration file contains a text and should not, or does not contain it and should.
pub fn contains(site: &DashboardSite, text: &str, expected: bool) -> Result<(), Failure> {
    let config = site.config()?;
    if config.contains(text) == expected {
        return Ok(());
    }
    Err(format!("{text:?} in the file, expected {expected}: {config}").into())
}

/// Waits for the report about an instruction. `kind`: `good` or `bad`.
pub fn reported(session: &mut DashboardSession, kind: &str) -> Result<(), Failure> {
    session
        .browser
        .wait_for(&format!("document.querySelector('#notice .notice.{kind}')"))
}

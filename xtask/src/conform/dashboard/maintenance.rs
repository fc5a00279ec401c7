//! The view of maintenance and the view that explains an address: forms that need no script.

use super::assertions::{expect, reported};
use super::session::DashboardSession;
use crate::Failure;

pub fn run(session: &mut DashboardSession) -> Result<(), Failure> {
    session.open("/maintenance")?;
    session.click("[value=purge]")?;
    reported(session, "good")?;
    // A reload of the page does not report the result again.
    session.browser.wait_for("!location.search.includes('result')")?;
    session.accessible("/maintenance with a report")?;
    level(session, "rocknet_proxy")?;
    // The page before has a report too, so each step waits for the button, which only the next page has or lacks.
    let reset = "dd form button[value=log-level]";
    session
        .browser
        .wait_for(&format!("document.querySelector('{reset}')"))?;
    reported(session, "good")?;
    session.click(reset)?;
    session.browser.wait_for(&format!(
        "document.readyState === 'complete' && !document.querySelector('{reset}')"
    ))?;
    reported(session, "good")?;
    level(session, "no_crate")?;
    reported(session, "bad")?;
    expect(session, "document.getElementById('module').value === 'no_crate'")?;
    session.accessible("/maintenance with an error")?;
    session.open("/maintenance")?;
    session.fill("binary", "/no/such/program")?;
    session.browser.press("Enter")?;
    session.shows("/no/such/program")?;
    reported(session, "bad")?;

    session.open("/explain")?;
    session.fill("url", "files.localhost/index.html")?;
    session.browser.press("Enter")?;
    session.shows("Leads to")?;
    session.no_errors("/explain")?;
    session.fill("url", "ftp://a/")?;
    session.browser.press("Enter")?;
    session
        .browser
        .wait_for("document.getElementById('url').getAttribute('aria-invalid') === 'true'")?;
    session.accessible("/explain with a problem")?;
    // The browser has reported the status of the page with the problem as an error, so the errors are discarded.
    session.browser.errors().map(drop)
}

/// Sets the level of a module.
fn level(session: &mut DashboardSession, module: &str) -> Result<(), Failure> {
    session.open("/maintenance")?;
    session.fill("module", module)?;
    session.browser.press("Enter")
}

//! Arrival at the dashboard: by a link of another site, with and without a session, and at an unknown address.

use super::session::DashboardSession;
use super::site::DashboardSite;
use crate::Failure;

pub fn run(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    // The website and the dashboard have other hosts, so the browser sends no cookie along with the link.
    let other = format!("http://127.0.0.1:{}/", site.port()?);
    for (path, heading) in [
        ("/logs", "Logs"),
        ("/websites/edit?name=files.localhost", "Edit a website"),
    ] {
        session.browser.open(&other)?;
        follow(session, path)?;
        session
            .browser
            .wait_for(&format!("document.querySelector('h1')?.textContent === '{heading}'"))?;
    }
    session.browser.open(&format!("{}/nothing", session.url))?;
    session.shows("there is no page with this address")?;
    session.accessible("/nothing")?;
    session.click(".state .button")?;
    session
        .browser
        .wait_for("document.querySelector('h1')?.textContent === 'Overview'")?;
    session.open("/")?;
    session.click("[data-do=logout]")?;
    session.browser.wait_for("location.pathname === '/login'")?;
    session.browser.open(&other)?;
    follow(session, "/logs")?;
    // The link for signing in then differs from the page only in its fragment.
    session
        .browser
        .wait_for("location.pathname === '/login' && document.querySelector('form[data-ready]')")?;
    // The browser has reported the page that was not found as an error, so the errors are discarded.
    session.browser.errors()?;
    session.sign_in(site)
}

/// Follows a link to a page of the dashboard, from the page that is open.
fn follow(session: &mut DashboardSession, path: &str) -> Result<(), Failure> {
    // The timer lets the call return its result, 0, before the page is left.
    let script = format!("setTimeout(() => location.assign('{}{path}')), 0", session.url);
    session.browser.evaluate(&script).map(drop)
}

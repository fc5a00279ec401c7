//! The view of the traffic: bans and purges by forms, and data that is renewed beside them.

use super::assertions::{expect, reported};
use super::session::DashboardSession;
use crate::Failure;

/// Renews the data of the view at once, as the script of the page does every few seconds.
const RENEW: &str =
    "import(document.querySelector('script[type=module]').src).then(page => page.renew()).then(() => 0)";

const IS_BANNED: &str = "document.querySelector('[data-key=\"192.0.2.7\"] button[value=lift]')";

pub fn run(session: &mut DashboardSession) -> Result<(), Failure> {
    session.open("/traffic")?;
    session.fill("address", "192.0.2.7")?;
    session.fill("reason", "scanner")?;
    session.browser.press("Enter")?;
    session.browser.wait_for(IS_BANNED)?;
    reported(session, "good")?;
    session.accessible("/traffic with a report")?;
    session.judge("/traffic")?;
    // The data is renewed while a form is filled in.
    session.fill("address", "typed")?;
    session.browser.evaluate(RENEW)?;
    expect(
        session,
        "document.activeElement.id === 'address' && document.activeElement.value === 'typed'",
    )?;
    session.click("[data-key='192.0.2.7'] button[value=lift]")?;
    session.browser.wait_for(&format!(
        "document.readyState === 'complete' && !{IS_BANNED} && document.querySelector('[data-state=empty]')"
    ))?;
    reported(session, "good")?;
    // A refused form keeps its text, also when the data is renewed.
    session.open("/traffic")?;
    session.fill("address", "127.0.0.1")?;
    session.browser.press("Enter")?;
    reported(session, "bad")?;
    session.browser.evaluate(RENEW)?;
    expect(session, "document.getElementById('address').value === '127.0.0.1'")?;
    session.accessible("/traffic with an error")?;
    session.open("/traffic")?;
    session.click("[value=purge]")?;
    reported(session, "bad")?;
    session.open("/traffic")?;
    session.fill("text", "http://files.localhost/")?;
    session.browser.press("Enter")?;
    reported(session, "good")?;
    session.no_errors("/traffic")
}

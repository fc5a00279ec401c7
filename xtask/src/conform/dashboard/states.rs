//! States of the views without their data: empty, loading, error, without permission, and disconnected.

use super::session::{DashboardSession, VIEWS};
use super::site::DashboardSite;
use crate::Failure;

/// A server without websites.
pub fn empty(session: &mut DashboardSession) -> Result<(), Failure> {
    for (view, text) in [
        ("/", "No website has had a request yet."),
        ("/websites", "No websites yet"),
        ("/upstreams", "No upstreams"),
        ("/traffic", "No client is banned."),
        ("/certificates", "No certificates"),
        ("/php", "No website has PHP that the server runs."),
        ("/history", "No changes yet"),
    ] {
        session.open(view)?;
        session.shows(text)?;
        let state = session.text("[data-state=empty]")?;
        if !state.contains(text) {
            return Err(format!("{view}: the state empty has the text {state:?}").into());
        }
        session.judge(view)?;
    }
    session.open("/logs")?;
    session.fill("contains", "a text that no line has")?;
    session
        .browser
        .wait_for("document.getElementById('log-state').dataset.state === 'empty'")?;
    session.judge("/logs")
}

/// Responses of the server that do not arrive.
pub fn loading(session: &mut DashboardSession) -> Result<(), Failure> {
    session.browser.hold(&["*/events", "*/api/*"])?;
    for (view, state) in [
        ("/", "[data-chart][aria-busy=true]"),
        ("/logs", "#log-state[data-state=loading]"),
        ("/settings", "#verdict[data-state=loading]"),
    ] {
        session.browser.open(&format!("{}{view}", session.url))?;
        session
            .browser
            .wait_for(&format!("document.querySelector({state:?})"))?;
        session.accessible(&format!("{view} while it is loading"))?;
    }
    session.browser.open(&format!("{}/upstreams", session.url))?;
    session.browser.wait_for("document.querySelector('[data-do=drain]')")?;
    session.click("[data-do=drain]")?;
    session
        .browser
        .wait_for("document.querySelector('[data-do=drain]').ariaBusy === 'true'")?;
    session.accessible("/upstreams while it is loading")?;
    session.browser.release()?;
    session.browser.wait_for("document.querySelector('[data-do=enable]')")?;
    session.click("[data-do=enable]")?;
    session.browser.wait_for("document.querySelector('[data-do=drain]')")?;
    session.browser.errors().map(drop)
}

/// Requests that fail.
pub fn errors(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    let text = site.config()?;
    site.write_config(&format!("{text}rot = 1\n"))?;
    session.open("/")?;
    session.click("[data-do=reload]")?;
    session.shows("is not reloaded, nothing has changed")?;
    session.shows("unknown key `rot`")?;
    session.accessible("/ with an error")?;
    session.open("/websites")?;
    session.click("[data-key='files.localhost'] [data-do=remove]")?;
    session.shows("is not changed: the new text is not valid")?;
    site.remove_config()?;
    for view in ["/settings", "/history"] {
        session.browser.open(&format!("{}{view}", session.url))?;
        session.shows("This view cannot be shown")?;
        session.shows("cannot read")?;
        session.accessible(&format!("{view} with an error"))?;
    }
    session.open("/websites/add")?;
    session.fill("root", "www")?;
    session.browser.press("Enter")?;
    session.shows("cannot read")?;
    session.open("/doctor")?;
    session.shows("Broken")?;
    session.accessible("/doctor with an error")?;
    site.write_config(&text)?;
    session
        .browser
        .open(&format!("{}/websites/edit?name=nothing", session.url))?;
    session.shows("there is no website with this name")?;
    // The server always has the data of these views, so their requests are blocked on the way.
    for (view, selector) in [
        ("/upstreams", "[data-do=drain]"),
        ("/certificates", "h1"),
        ("/logs", "h1"),
    ] {
        session.open(view)?;
        session.browser.block(&["*/api/*", &format!("*{view}")])?;
        session.click(selector)?;
        match view {
            "/upstreams" => session.shows("The server does not respond.")?,
            "/certificates" => session.shows("Not connected to the server.")?,
            _ => {
                session
                    .browser
                    .evaluate("document.getElementById('kind').dispatchEvent(new Event('input', { bubbles: true }))")?;
                session.shows("Not connected: new lines are missing.")?;
            }
        }
        session.browser.block(&[])?;
    }
    // The browser reports each failed request.
    session.browser.errors().map(drop)
}

/// A session that began with the read token.
pub fn read_only(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/")?;
    session.click("[data-do=logout]")?;
    session
        .browser
        .wait_for("location.pathname === '/login' && document.querySelector('form[data-ready]')")?;
    session.accessible("/login")?;
    session.fill("token", "wrong")?;
    session.browser.press("Enter")?;
    session.shows("this is not a token or the password of this server")?;
    session.accessible("/login with an error")?;
    let token = site.read_token()?;
    session.fill("token", &token)?;
    session.browser.press("Enter")?;
    session.shows("Read only")?;
    for view in ["/logs", "/settings", "/history", "/websites/add", "/explain"] {
        session.browser.open(&format!("{}{view}", session.url))?;
        session.shows("needs the full token")?;
        session.accessible(&format!("{view} without permission"))?;
    }
    for view in ["/", "/websites", "/upstreams", "/traffic", "/php", "/maintenance"] {
        session.open(view)?;
        let changes = "document.querySelector('[data-do]:not([data-do=logout]), #written, [method=post]') === null";
        if session.browser.evaluate(changes)? != true {
            return Err(format!("{view} offers changes to a session that only reads").into());
        }
    }
    session.browser.errors()?;
    session.sign_in(site)
}

/// A server that ends while each view is shown.
pub fn disconnected(session: &mut DashboardSession, site: DashboardSite) -> Result<(), Failure> {
    for view in VIEWS {
        session.browser.block(&["*/events"])?;
        session.browser.open(&format!("{}{view}", session.url))?;
        session
            .browser
            .wait_for("document.body.dataset.connection === 'lost'")?;
        session.shows("Not connected to the server.")?;
        session.accessible(&format!("{view} without a connection"))?;
        session.browser.block(&[])?;
        session.click("#connection button")?;
        session
            .browser
            .wait_for("document.body.dataset.connection === 'live'")?;
    }
    session.open("/websites/add")?;
    session.fill("root", "typed before")?;
    drop(site);
    session
        .browser
        .wait_for("document.body.dataset.connection === 'lost'")?;
    session.shows("What you see is from")?;
    let kept = session.browser.evaluate("document.getElementById('root').value")?;
    if kept != "typed before" {
        return Err(format!("the input is lost: {kept}").into());
    }
    session.browser.errors().map(drop)
}

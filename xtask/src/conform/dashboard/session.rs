//! A browser that is signed in to a dashboard, with the checks that apply to every view.

use super::super::devtools::{DevTools, Viewport};
use super::site::DashboardSite;
use crate::Failure;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Paths of all views.
pub const VIEWS: [&str; 16] = [
    "/",
    "/websites",
    "/websites/add",
    "/websites/edit?name=files.localhost",
    "/websites/copy?name=shop.localhost",
    "/logs",
    "/upstreams",
    "/traffic",
    "/certificates",
    "/php",
    "/settings",
    "/history",
    "/doctor",
    "/maintenance",
    "/explain",
    "/explain?url=files.localhost/",
];

/// Screen of a laptop, and the smallest one that the dashboard supports.
const WIDE: Viewport = Viewport(1280, 860);
const NARROW: Viewport = Viewport(360, 740);

/// Seconds of load that the charts in the pictures show.
const LOAD_SECONDS: u32 = 60;

/// Rules of axe-core that are checked: WCAG 2.2 up to AA, and the further recommendations of the authors of axe-core.
const RULES: &str = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";

/// A browser that is signed in to a dashboard.
pub struct DashboardSession {
    /// Text of axe-core.
    axe: String,
    pub browser: DevTools,
    /// URL without a slash at the end.
    pub url: String,
}

impl DashboardSession {
    /// Starts a browser. `axe`: the text of axe-core.
    pub fn new(axe: String) -> Result<DashboardSession, Failure> {
        let mut browser = DevTools::start()?;
        browser.resize(WIDE)?;
        Ok(DashboardSession {
            axe,
            browser,
            url: String::new(),
        })
    }

    /// Signs in by the link that `rocknet dashboard` prints.
    pub fn sign_in(&mut self, site: &DashboardSite) -> Result<(), Failure> {
        let link = site.link()?;
        let (url, _) = link.split_once("/login#").ok_or_else(|| format!("no link: {link}"))?;
        self.url = url.to_owned();
        self.browser.open(&link)?;
        self.browser
            .wait_for("document.querySelector('h1')?.textContent === 'Overview'")?;
        self.no_errors("/login")
    }

    /// Opens a view and waits until it shows live data and its form can be used.
    pub fn open(&mut self, view: &str) -> Result<(), Failure> {
        self.browser.open(&format!("{}{view}", self.url))?;
        self.browser.wait_for(
            "document.body.dataset.connection === 'live' && !document.querySelector('form:not([data-ready])')",
        )
    }

    /// Fails if the browser has reported errors.
    pub fn no_errors(&mut self, what: &str) -> Result<(), Failure> {
        let errors = self.browser.errors()?;
        match errors.first() {
            None => Ok(()),
            Some(error) => Err(format!("{what}: {error}").into()),
        }
    }

    /// Checks a view with axe-core in both colours, and that it needs no horizontal scrolling on a small screen.
    pub fn judge(&mut self, view: &str) -> Result<(), Failure> {
        self.open(view)?;
        for (scheme, size) in [("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)] {
            self.browser.prefer(scheme)?;
            self.browser.resize(size)?;
            self.accessible(&format!("{view} in {scheme}, {} pixels wide", size.0))?;
            let excess = self
                .browser
                .evaluate("document.documentElement.scrollWidth - innerWidth")?;
            if excess.as_i64() != Some(0) {
                return Err(format!("{view} is {excess} pixels wider than a screen of {}", size.0).into());
            }
        }
        self.browser.prefer("light")?;
        self.browser.resize(WIDE)?;
        self.no_errors(view)
    }

    /// Fails if axe-core finds anything in the page.
    pub fn accessible(&mut self, what: &str) -> Result<(), Failure> {
        let is_loaded = self.browser.evaluate("typeof axe !== 'undefined'")?;
        if is_loaded != true {
            let axe = format!("{}; 0", self.axe);
            self.browser.evaluate(&axe)?;
        }
        let script = format!(
            "axe.run({{ runOnly: {RULES} }}).then(result => result.violations.map(one => \
             [one.id, one.help, ...one.nodes.map(node => node.html + ': ' + node.failureSummary)].join('\\n')))"
        );
        let violations = self.browser.evaluate(&script)?;
        match violations.as_array().and_then(|all| all.first()) {
            None => Ok(()),
            Some(first) => Err(format!("{what}: {}", first.as_str().unwrap_or_default()).into()),
        }
    }

    /// Writes pictures for the documentation. Before, the charts get a load that changes.
    pub fn pictures(&mut self, folder: &Path, site: &DashboardSite) -> Result<(), Failure> {
        fs::create_dir_all(folder)?;
        self.open("/")?;
        for second in 0..LOAD_SECONDS {
            let wave = (second as f64 / 4.0).sin() * 150.0 + (second % 7) as f64 * 20.0;
            site.visit_times((300.0 + wave) as usize)?;
            self.browser
                .evaluate("new Promise(done => document.addEventListener('sample', () => done(0), { once: true }))")?;
        }
        for (name, view, scheme) in [
            ("dashboard.png", "/", "light"),
            ("dashboard-websites.png", "/websites", "dark"),
            ("dashboard-edit.png", "/websites/edit?name=files.localhost", "light"),
        ] {
            self.browser.prefer(scheme)?;
            self.open(view)?;
            self.browser
                .wait_for("!document.querySelector('[aria-busy=true], [data-state=loading]')")?;
            self.browser.picture(&folder.join(name))?;
        }
        self.browser.prefer("light")
    }

    /// Returns the text of the first element that a selector matches; empty if nothing matches.
    pub fn text(&mut self, selector: &str) -> Result<String, Failure> {
        let text = self
            .browser
            .evaluate(&format!("document.querySelector({selector:?})?.textContent ?? ''"))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Clicks on the first element that a selector matches.
    pub fn click(&mut self, selector: &str) -> Result<(), Failure> {
        let clicked = self
            .browser
            .evaluate(&format!("document.querySelector({selector:?}).click()"))?;
        debug_assert_eq!(clicked, Value::Null);
        Ok(())
    }

    /// Puts text into a field, as if it was typed.
    pub fn fill(&mut self, id: &str, text: &str) -> Result<(), Failure> {
        let select = format!("document.getElementById({id:?}).focus(), document.getElementById({id:?}).select()");
        self.browser.evaluate(&select)?;
        self.browser.insert(text)
    }

    /// Waits until the page contains a text.
    pub fn shows(&mut self, text: &str) -> Result<(), Failure> {
        self.browser
            .wait_for(&format!("document.body.innerText.includes({text:?})"))
    }
}

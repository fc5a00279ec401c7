//! The list of websites: filter, order, selection, and requests per second.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use rocknet_control::SiteSummary;
use rocknet_control::route::RouteTraffic;

use super::services::version_numbers;
use super::website_facts::WebsiteFacts;
use crate::act::SortKey;

/// State of a website.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebsiteState {
    /// A part of the website is not served as configured.
    Fault,
    /// The website is in the configuration file, but the server has not loaded it yet.
    NotLoaded,
    Served,
    Disabled,
}

/// A website.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Website {
    pub summary: SiteSummary,
    /// Requests per second; `None` before the second measurement.
    pub rate: Option<f64>,
    pub facts: WebsiteFacts,
    /// True if only the file has the website.
    pub is_not_loaded: bool,
}

impl Website {
    /// Returns the state.
    pub fn state(&self) -> WebsiteState {
        match &self.summary {
            _ if self.is_not_loaded => WebsiteState::NotLoaded,
            summary if summary.disabled => WebsiteState::Disabled,
            summary if summary.fault.is_some() => WebsiteState::Fault,
            _ => WebsiteState::Served,
        }
    }

    /// Returns the URL to open, an HTTPS URL if there is one; `None` if the website cannot be opened.
    pub fn url(&self) -> Option<&str> {
        self.summary.url()
    }
}

/// The list of websites.
#[derive(Debug, Default)]
pub struct Websites {
    all: Vec<Website>,
    /// True once the server has sent the list.
    pub is_loaded: bool,
    /// Message of the server if it has refused to send the list. The websites are those of the last list.
    pub list_error: Option<String>,
    /// Message of the server if it has refused to send the counters, so that there are no rates.
    pub rates_error: Option<String>,
    pub filter: String,
    pub sort: SortKey,
    pub descending: bool,
    /// Name of the selected website.
    pub selected: Option<String>,
    /// Latest counters: the time, and the number of responses by website.
    counters: Option<(Duration, BTreeMap<String, u64>)>,
}

impl Websites {
    /// Replaces the list. Rates, the selection, and websites that are not loaded yet are kept.
    pub fn replace(&mut self, sites: Vec<SiteSummary>) {
        let is_kept = |website: &&Website| {
            let name = &website.summary.name;
            website.is_not_loaded && !sites.iter().any(|site| site.name == *name)
        };
        let not_loaded: Vec<Website> = self.all.iter().filter(is_kept).cloned().collect();
        let rates: BTreeMap<String, Option<f64>> = std::mem::take(&mut self.all)
            .into_iter()
            .map(|website| (website.summary.name, website.rate))
            .collect();
        self.all = sites
            .into_iter()
            .map(|summary| Website {
                rate: rates.get(&summary.name).copied().flatten(),
                summary,
                facts: WebsiteFacts::default(),
                is_not_loaded: false,
            })
            .chain(not_loaded)
            .collect();
        self.is_loaded = true;
        self.end_selection();
    }

    /// Sets the names of the websites that only the file has. Returns true if the list has changed.
    pub fn set_not_loaded(&mut self, names: &[String]) -> bool {
        let before: Vec<&String> = self.not_loaded().collect();
        let is_new = |name: &&String| self.find(name).is_none_or(|website| website.is_not_loaded);
        let now: Vec<&String> = names.iter().filter(is_new).collect();
        if before == now {
            return false;
        }
        let added: Vec<Website> = now
            .into_iter()
            .map(|name| Website {
                summary: SiteSummary {
                    name: name.clone(),
                    ..SiteSummary::default()
                },
                is_not_loaded: true,
                ..Website::default()
            })
            .collect();
        self.all.retain(|website| !website.is_not_loaded);
        self.all.extend(added);
        self.end_selection();
        true
    }

    fn not_loaded(&self) -> impl Iterator<Item = &String> {
        let waiting = self.all.iter().filter(|website| website.is_not_loaded);
        waiting.map(|website| &website.summary.name)
    }

    /// Ends the selection if its website is gone.
    fn end_selection(&mut self) {
        let is_gone = |name: &String| self.find(name).is_none();
        if self.selected.as_ref().is_some_and(is_gone) {
            self.selected = None;
        }
    }

    /// Collects the facts of each website, because a list that they are read from has changed. `facts` gets true for a
    /// website that is not loaded yet.
    pub fn collect_facts(&mut self, facts: impl Fn(&SiteSummary, bool) -> WebsiteFacts) {
        for website in &mut self.all {
            website.facts = facts(&website.summary, website.is_not_loaded);
        }
    }

    /// Returns the names of all websites.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|website| &*website.summary.name)
    }

    /// Takes counters of routes, and computes the rates since the previous counters.
    pub fn measure(&mut self, at: Duration, traffic: &[RouteTraffic]) {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for route in traffic {
            let count = counts.entry(route.site.clone()).or_default();
            *count = count.saturating_add(route.responses);
        }
        if let Some((began, before)) = &self.counters {
            let seconds = at.saturating_sub(*began).as_secs_f64();
            for website in self.all.iter_mut().filter(|_| seconds > 0.0) {
                let name = &website.summary.name;
                let count = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or_default();
                website.rate = Some(count(&counts).saturating_sub(count(before)) as f64 / seconds);
            }
        }
        self.counters = Some((at, counts));
    }

    /// Forgets everything but the chosen order, because another server is used.
    pub fn forget(&mut self) {
        let (sort, descending) = (self.sort, self.descending);
        *self = Websites {
            sort,
            descending,
            ..Websites::default()
        };
    }

    /// Discards the counters, because the counters of another server start at zero.
    pub fn forget_rates(&mut self) {
        self.counters = None;
        self.all.iter_mut().for_each(|website| website.rate = None);
    }

    /// Returns the websites that match the filter, in the chosen order.
    pub fn shown(&self) -> Vec<&Website> {
        let wanted = self.filter.trim().to_lowercase();
        let mut shown: Vec<&Website> = self
            .all
            .iter()
            .filter(|website| wanted.is_empty() || website.facts.search.contains(&wanted))
            .collect();
        shown.sort_by(|one, two| {
            let order = match self.sort {
                SortKey::Name => Ordering::Equal,
                SortKey::State => one.state().cmp(&two.state()),
                SortKey::Kind => one.summary.kind.name().cmp(two.summary.kind.name()),
                SortKey::Address => one.url().cmp(&two.url()),
                // Websites without PHP are last, and the newest version is first.
                SortKey::Php => php_key(two).cmp(&php_key(one)),
                SortKey::Protocol => one.facts.protocol.cmp(two.facts.protocol),
                SortKey::Trust => one.facts.trust.cmp(&two.facts.trust),
                // The busiest is first.
                SortKey::Rate => two.rate.unwrap_or(-1.0).total_cmp(&one.rate.unwrap_or(-1.0)),
            };
            let order = order.then_with(|| one.summary.name.cmp(&two.summary.name));
            if self.descending { order.reverse() } else { order }
        });
        shown
    }

    /// Sorts by a column, or turns the order around if the list is sorted by it already.
    pub fn sort_by(&mut self, key: SortKey) {
        self.descending = self.sort == key && !self.descending;
        self.sort = key;
    }

    /// Returns the website with a name.
    pub fn find(&self, name: &str) -> Option<&Website> {
        self.all.iter().find(|website| website.summary.name == name)
    }

    /// Returns the selected website, if the filter shows it.
    pub fn selected(&self) -> Option<&Website> {
        let name = self.selected.as_ref()?;
        self.shown().into_iter().find(|website| website.summary.name == *name)
    }

    /// Returns the number of all websites, and the number of served websites.
    pub fn count(&self) -> (usize, usize) {
        let served = self
            .all
            .iter()
            .filter(|website| website.state() == WebsiteState::Served);
        (self.all.len(), served.count())
    }

    /// Returns a name for a copy that no website has: `a-2.test` for `a.test`, `*.a-2.test` for `*.a.test`, and the
    /// next port for `:8080` and `10.0.0.1:8080`.
    pub fn copy_name(&self, name: &str) -> String {
        // After the last port, the first one without special rights follows.
        let next = |port: u16, number: u16| port.checked_add(number - 1).unwrap_or(1022 + number);
        let socket = name.rsplit_once(':').filter(|(host, _)| !host.ends_with(':'));
        let socket = socket.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let (prefix, rest) = match name.strip_prefix("*.") {
            Some(parent) => ("*.", parent),
            None => ("", name),
        };
        let named = |number: u16| match (socket, rest.split_once('.')) {
            (Some((host, port)), _) => format!("{host}:{}", next(port, number)),
            _ if is_address => format!("{name}:{}", next(8080, number)),
            // `default` stands for all names that no other website has, so its copy needs a name.
            _ if name == "default" => format!("default-{number}.localhost"),
            (None, Some((first, last))) => format!("{prefix}{first}-{number}.{last}"),
            (None, None) => format!("{name}-{number}"),
        };
        (2..u16::MAX)
            .map(named)
            .find(|copy| self.find(copy).is_none())
            .unwrap_or_else(|| named(2))
    }
}

/// Returns the key by which websites are sorted in the column of PHP: 8.10 is newer than 8.9.
fn php_key(website: &Website) -> (Vec<u32>, &str) {
    let php = &website.facts.php;
    (version_numbers(php), php)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocknet_control::SiteKind;

    fn site(name: &str, root: &str) -> SiteSummary {
        SiteSummary {
            name: name.to_owned(),
            root: Some(root.into()),
            urls: vec![format!("http://{name}:8080/"), format!("https://{name}:8443/")],
            kind: SiteKind::Files,
            ..SiteSummary::default()
        }
    }

    fn names(websites: &Websites) -> Vec<&str> {
        websites.shown().iter().map(|website| &*website.summary.name).collect()
    }

    fn traffic(site: &str, responses: u64) -> RouteTraffic {
        RouteTraffic {
            site: site.to_owned(),
            responses,
            ..RouteTraffic::default()
        }
    }

    #[test]
    fn websites_are_filtered_and_sorted() {
        let mut websites = Websites::default();
        let mut off = site("c.test", "/srv/Shop");
        off.disabled = true;
        let mut broken = site("b.test", "/srv/b");
        broken.fault = Some("x".to_owned());
        websites.replace(vec![off, broken, site("a.test", "/srv/a")]);
        websites.collect_facts(|site, _| WebsiteFacts {
            php: site
                .name
                .replace("a.test", "8.2")
                .replace("b.test", "")
                .replace("c.test", "8.10"),
            search: format!("{}\n{}", site.name, site.root.as_ref().unwrap().display()).to_lowercase(),
            ..WebsiteFacts::default()
        });
        assert_eq!(names(&websites), ["a.test", "b.test", "c.test"]);
        websites.sort_by(SortKey::Name);
        assert_eq!(names(&websites), ["c.test", "b.test", "a.test"]);
        websites.sort_by(SortKey::State);
        assert_eq!(names(&websites), ["b.test", "a.test", "c.test"]);
        websites.sort_by(SortKey::Php);
        assert_eq!(names(&websites), ["c.test", "a.test", "b.test"]);
        websites.filter = " SHOP ".to_owned();
        assert_eq!(names(&websites), ["c.test"]);
        assert_eq!(websites.count(), (3, 1));
        websites.selected = Some("a.test".to_owned());
        assert!(websites.selected().is_none());
        websites.filter.clear();
        assert!(websites.selected().is_some());
    }

    #[test]
    fn rates_are_differences_per_second() {
        let mut websites = Websites::default();
        websites.replace(vec![site("a.test", "/a"), site("b.test", "/b")]);
        let second = Duration::from_secs(1);
        websites.measure(second, &[traffic("a.test", 10)]);
        assert_eq!(websites.find("a.test").unwrap().rate, None);
        websites.measure(
            second * 3,
            &[traffic("a.test", 20), traffic("a.test", 10), traffic("b.test", 1)],
        );
        assert_eq!(websites.find("a.test").unwrap().rate, Some(10.0));
        websites.replace(vec![site("b.test", "/b"), site("c.test", "/c")]);
        assert_eq!(websites.find("b.test").unwrap().rate, Some(0.5));
        websites.sort_by(SortKey::Rate);
        assert_eq!(names(&websites), ["b.test", "c.test"]);
        // Counters that no server has reached do not overflow.
        websites.measure(second * 4, &[traffic("b.test", u64::MAX), traffic("b.test", u64::MAX)]);
        websites.forget_rates();
        websites.measure(second * 5, &[]);
        assert_eq!(websites.find("b.test").unwrap().rate, None);
    }

    #[test]
    fn the_selection_ends_with_its_website() {
        let mut websites = Websites::default();
        websites.replace(vec![site("a.test", "/a")]);
        websites.selected = Some("a.test".to_owned());
        websites.replace(vec![site("a.test", "/b")]);
        assert!(websites.selected.is_some());
        websites.replace(Vec::new());
        assert!(websites.selected.is_none());
    }

    #[test]
    fn the_encrypted_url_is_opened() {
        let mut website = Website {
            summary: site("a.test", "/a"),
            ..Website::default()
        };
        assert_eq!(website.url(), Some("https://a.test:8443/"));
        website.summary.urls = vec![
            "unix:/x".to_owned(),
            "https://*.a.test/".to_owned(),
            "http://a.test/".to_owned(),
        ];
        assert_eq!(website.url(), Some("http://a.test/"));
        website.summary.disabled = true;
        assert_eq!(website.url(), None);
    }

    #[test]
    fn copies_get_a_free_name() {
        let mut websites = Websites::default();
        websites.replace(vec![site("a.test", "/a"), site("a-2.test", "/a"), site(":8080", "/a")]);
        assert_eq!(websites.copy_name("a.test"), "a-3.test");
        assert_eq!(websites.copy_name(":8080"), ":8081");
        assert_eq!(websites.copy_name("intranet"), "intranet-2");
        for (name, copy) in [
            ("*.a.test", "*.a-2.test"),
            ("10.0.0.1:8080", "10.0.0.1:8081"),
            ("[::1]:80", "[::1]:81"),
            ("a.test:8443", "a.test:8444"),
            (":65535", ":1024"),
            ("10.0.0.1", "10.0.0.1:8081"),
            ("[::1]", "[::1]:8081"),
            ("default", "default-2.localhost"),
        ] {
            assert_eq!(websites.copy_name(name), copy);
        }
    }
}

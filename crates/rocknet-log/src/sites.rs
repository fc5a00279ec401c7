//! Sites of log lines: consecutive lines of one site are a run, so that a buffer needs an entry per change of the site
//! rather than per line.

use std::collections::HashMap;
use std::sync::Arc;

/// Lines of one site that follow each other in a buffer of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteRun {
    /// Number of the site in [`SiteNames`].
    pub(super) site: u32,
    /// Position after the last byte of these lines. The lines begin where the previous run ends.
    pub(super) end: usize,
}

/// Lines of one site that follow each other in a batch for followers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedRun {
    /// Name of the site; `None` for messages that name no site.
    pub(super) site: Option<Arc<str>>,
    /// Position after the last byte of these lines. The lines begin where the previous run ends.
    pub(super) end: usize,
}

/// Adds the bytes up to `end` to the last run if it is of the same site, or as a new run.
#[inline]
pub(super) fn extend(runs: &mut Vec<SiteRun>, site: u32, end: usize) {
    match runs.last_mut() {
        Some(last) if last.site == site => last.end = end,
        _ => runs.push(SiteRun { site, end }),
    }
}

/// Names of the sites with an access log, by number. It keeps the names of removed sites, because lines of them may
/// still be on their way.
#[derive(Default)]
pub(super) struct SiteNames {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl SiteNames {
    /// Returns the number of a site.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// Returns the runs with the names of their sites.
    pub(super) fn resolve(&self, runs: &[SiteRun]) -> Vec<NamedRun> {
        let named = runs.iter().map(|run| NamedRun {
            site: self.names.get(run.site as usize).cloned(),
            end: run.end,
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_site_share_a_run() {
        let mut names = SiteNames::default();
        let (a, b) = (names.number("a"), names.number("b"));
        assert_eq!((a, b, names.number("a")), (0, 1, 0));
        let mut runs = Vec::new();
        for (site, end) in [(a, 10), (a, 20), (b, 25), (a, 30)] {
            extend(&mut runs, site, end);
        }
        let named = names.resolve(&runs);
        let found: Vec<_> = named.iter().map(|run| (run.site.as_deref(), run.end)).collect();
        assert_eq!(found, [(Some("a"), 20), (Some("b"), 25), (Some("a"), 30)]);
    }
}

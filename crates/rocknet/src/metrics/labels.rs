//! Numbers of the routes of all configurations since the start of the server. Workers find the counters of a route by
//! its number instead of its name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number under which requests are counted if they have no route with counters of its own: requests to no site,
/// requests that could not be parsed, and requests to routes beyond the bounds.
pub const OTHER: u32 = 0;

/// Maximum number of routes with numbers. The number is bounded because the names of earlier configurations are kept
/// too. A route without requests needs memory only for its names.
const MAX_NUMBERED: usize = 1 << 16;

/// Maximum number of routes with counters of their own. Each route needs 1.7 KB per worker, and about 2 KB in the text
/// of all metrics.
const MAX_COUNTED: usize = 2000;

/// Labels of a route in the metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteLabel {
    /// Name of the site.
    pub site: Arc<str>,
    /// Pattern of the route as in the configuration; `/*` for the settings of the site itself.
    pub route: Arc<str>,
}

/// Numbers and labels of routes. A reload keeps them, so that counters never decrease.
#[derive(Debug)]
pub struct RouteLabels(Mutex<LabelTable>);

#[derive(Debug)]
struct LabelTable {
    numbers: HashMap<RouteLabel, u32>,
    /// Label by number, each with a flag that is true once the route has counters.
    labels: Vec<(RouteLabel, bool)>,
    /// Number of routes with counters.
    counted: usize,
}

impl Default for RouteLabels {
    fn default() -> RouteLabels {
        // No site and no pattern contains a parenthesis.
        let other = RouteLabel {
            site: "(other)".into(),
            route: "(other)".into(),
        };
        RouteLabels(Mutex::new(LabelTable {
            numbers: HashMap::new(),
            labels: vec![(other, true)],
            counted: 0,
        }))
    }
}

impl RouteLabels {
    /// Returns the number of a route, the same for equal labels; [`OTHER`] beyond the bound.
    pub fn number(&self, label: &RouteLabel) -> u32 {
        let mut table = self.lock();
        if let Some(number) = table.numbers.get(label) {
            return *number;
        }
        if table.labels.len() >= MAX_NUMBERED {
            return OTHER;
        }
        let number = table.labels.len() as u32;
        table.labels.push((label.clone(), false));
        table.numbers.insert(label.clone(), number);
        number
    }

    /// Returns the number under which the requests of the route `number` are counted: `number` itself, or [`OTHER`] if
    /// `MAX_COUNTED` other routes have had a request before this route.
    pub fn admit(&self, number: u32) -> u32 {
        let table = &mut *self.lock();
        match table.labels.get_mut(number as usize) {
            Some((_, true)) => number,
            Some((_, is_counted)) if table.counted < MAX_COUNTED => {
                *is_counted = true;
                table.counted += 1;
                number
            }
            _ => OTHER,
        }
    }

    /// Returns the label of a number; `None` if no route has the number.
    pub fn label(&self, number: u32) -> Option<RouteLabel> {
        self.lock().labels.get(number as usize).map(|(label, _)| label.clone())
    }

    fn lock(&self) -> MutexGuard<'_, LabelTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(site: &str, number: usize) -> RouteLabel {
        RouteLabel {
            site: site.into(),
            route: format!("/{number}").into(),
        }
    }

    #[test]
    fn the_first_routes_with_requests_have_counters_of_their_own() {
        let labels = RouteLabels::default();
        let numbers: Vec<u32> = (0..MAX_COUNTED + 2).map(|at| labels.number(&label("a", at))).collect();
        assert_eq!(labels.number(&label("a", 1)), numbers[1]);
        assert_eq!(labels.label(numbers[1]), Some(label("a", 1)));
        // The routes that were numbered last get the first requests, because the order of the numbers must not matter.
        for &number in numbers.iter().rev().take(MAX_COUNTED) {
            assert_eq!(labels.admit(number), number);
        }
        assert_eq!(labels.admit(numbers[0]), OTHER);
        assert_eq!(
            labels.admit(numbers[MAX_COUNTED]),
            numbers[MAX_COUNTED],
            "admitted once, for ever"
        );
        assert_eq!(labels.admit(OTHER), OTHER);
        assert_eq!(labels.admit(u32::MAX), OTHER);
    }

    #[test]
    fn the_number_of_routes_is_bounded() {
        let labels = RouteLabels::default();
        for at in 1..MAX_NUMBERED {
            assert_eq!(labels.number(&label("a", at)), at as u32);
        }
        assert_eq!(labels.number(&label("b", 1)), OTHER);
        assert_eq!(labels.number(&label("a", 7)), 7, "known routes keep their numbers");
    }
}

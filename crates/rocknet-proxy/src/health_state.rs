//! Health state of an upstream, which changes only after several consecutive health checks with the opposite result.

/// Numbers of consecutive checks that change the state.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// Number of successes after which an unhealthy upstream becomes healthy.
    pub rise: u32,
    /// Number of failures after which a healthy upstream becomes unhealthy.
    pub fall: u32,
}

/// State of one upstream.
#[derive(Debug, Default)]
pub struct HealthState {
    is_unhealthy: bool,
    /// Number of consecutive checks that contradict the state.
    contrary: u32,
    /// True if at least one check was recorded.
    has_verdict: bool,
}

impl HealthState {
    /// Records a check. Returns true if the upstream becomes unhealthy, false if it becomes healthy, `None` if nothing
    /// changes.
    ///
    /// The first check is sufficient to change the state, so that an upstream that is down at start gets no requests.
    pub fn record(&mut self, is_success: bool, thresholds: Thresholds) -> Option<bool> {
        let needed = match (self.has_verdict, self.is_unhealthy) {
            (false, _) => 1,
            (true, true) => thresholds.rise,
            (true, false) => thresholds.fall,
        };
        self.has_verdict = true;
        // The check confirms the state.
        if is_success != self.is_unhealthy {
            self.contrary = 0;
            return None;
        }
        self.contrary += 1;
        if self.contrary < needed {
            return None;
        }
        self.contrary = 0;
        self.is_unhealthy = !self.is_unhealthy;
        Some(self.is_unhealthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_first_check_only_several_consecutive_checks_change_the_state() {
        let thresholds = Thresholds { rise: 2, fall: 3 };
        for (record, verdicts) in [
            // Checks: `+` is a success, `-` a failure. State after each check: `.` is healthy, `x` unhealthy.
            ("+--+---", "......x"),
            ("---", "xxx"),
            ("-+-++--+---", "xxxx......x"),
            ("+---+-++", "...xxxx."),
        ] {
            let (mut state, mut is_unhealthy) = (HealthState::default(), false);
            let found: String = record
                .chars()
                .map(|check| {
                    is_unhealthy = state.record(check == '+', thresholds).unwrap_or(is_unhealthy);
                    if is_unhealthy { 'x' } else { '.' }
                })
                .collect();
            assert_eq!(found, verdicts, "{record}");
        }
    }
}

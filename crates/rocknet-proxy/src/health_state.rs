//! What checks in the background make of a server: sick after some that failed, well again after some that did not.

/// How many checks in a row change the verdict.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    pub rise: u32,
    pub fall: u32,
}

/// The verdict on one server.
#[derive(Debug, Default)]
pub struct HealthState {
    is_unhealthy: bool,
    /// Checks in a row that spoke against it.
    contrary: u32,
    has_verdict: bool,
}

impl HealthState {
    /// A check was made. Tells whether the server is sick from now on, where that changes. The first check decides alone: a
    /// server that is down when this one starts is not tried by clients.
    pub fn record(&mut self, is_success: bool, thresholds: Thresholds) -> Option<bool> {
        let needed = match (self.has_verdict, self.is_unhealthy) {
            (false, _) => 1,
            (true, true) => thresholds.rise,
            (true, false) => thresholds.fall,
        };
        self.has_verdict = true;
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
    fn several_checks_in_a_row_change_the_state() {
        let thresholds = Thresholds { rise: 2, fall: 3 };
        for (record, verdicts) in [
            // `+`: well, `-`: not. The verdict after each: `.` well, `x` sick.
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

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
    is_sick: bool,
    /// Checks in a row that spoke against it.
    against: u32,
    was_checked: bool,
}

impl HealthState {
    /// A check was made. Tells whether the server is sick from now on, where that changes. The first check decides alone: a
    /// server that is down when this one starts is not tried by clients.
    pub fn heard(&mut self, is_well: bool, patience: Thresholds) -> Option<bool> {
        let needed = match (self.was_checked, self.is_sick) {
            (false, _) => 1,
            (true, true) => patience.rise,
            (true, false) => patience.fall,
        };
        self.was_checked = true;
        if is_well != self.is_sick {
            self.against = 0;
            return None;
        }
        self.against += 1;
        if self.against < needed {
            return None;
        }
        self.against = 0;
        self.is_sick = !self.is_sick;
        Some(self.is_sick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_some_checks_to_change_the_verdict() {
        let patience = Thresholds { rise: 2, fall: 3 };
        for (heard, sick) in [
            // `+`: well, `-`: not. The verdict after each: `.` well, `x` sick.
            ("+--+---", "......x"),
            ("---", "xxx"),
            ("-+-++--+---", "xxxx......x"),
            ("+---+-++", "...xxxx."),
        ] {
            let (mut vitals, mut is_sick) = (HealthState::default(), false);
            let found: String = heard
                .chars()
                .map(|check| {
                    is_sick = vitals.heard(check == '+', patience).unwrap_or(is_sick);
                    if is_sick { 'x' } else { '.' }
                })
                .collect();
            assert_eq!(found, sick, "{heard}");
        }
    }
}

//! Results of the checks of `rocknet doctor`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// Works, but worse than it could.
    Fair,
    Bad,
}

/// One check: its subject, and what was found and helps.
pub struct Check {
    pub what: &'static str,
    pub verdict: Verdict,
    pub found: String,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Fair => "fair",
            Verdict::Bad => "bad",
        }
    }
}

impl Check {
    pub fn good(what: &'static str, found: String) -> Check {
        Check {
            what,
            verdict: Verdict::Good,
            found,
        }
    }

    pub fn fair(what: &'static str, found: impl Into<String>) -> Check {
        Check {
            what,
            verdict: Verdict::Fair,
            found: found.into(),
        }
    }

    pub fn bad(what: &'static str, found: String) -> Check {
        Check {
            what,
            verdict: Verdict::Bad,
            found,
        }
    }
}

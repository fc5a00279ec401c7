//! Flags of `RewriteRule`, such as `[R=301,L,NC]`.

/// Flags of a rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RewriteFlags {
    /// Status of a redirect (`R`), if the rule redirects.
    pub redirect: Option<u64>,
    /// Status of a refusal (`F`, `G`, or `R` with the status of an error), if the rule refuses requests.
    pub refusal: Option<u64>,
    pub last: bool,
    /// True for `END`, after which the rules of folders are not applied either.
    pub ends_all: bool,
    /// Variables that the rule sets: `E=NAME:VALUE`.
    pub variables: Vec<String>,
    pub discards_query: bool,
    pub appends_query: bool,
    pub ignores_case: bool,
    pub is_proxy: bool,
    /// True if the rule does not apply to the files that Apache looks for itself, such as the index of a folder (`NS`).
    pub skips_subrequests: bool,
    /// True for `C`: the rule that follows is applied only if this one matches.
    pub is_chained: bool,
    /// Number of rules after this one that are applied only if this one does not match (`S`).
    pub skipped: usize,
    /// The first flag that RockNet cannot express, or whose value is invalid.
    pub unsupported: Option<String>,
}

impl RewriteFlags {
    /// Reads the third argument of a `RewriteRule`.
    pub fn read(text: &str) -> RewriteFlags {
        let mut flags = RewriteFlags::default();
        let list = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
        for flag in list.map(str::trim).filter(|flag| !flag.is_empty()) {
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            match (name.to_ascii_lowercase().as_str(), value) {
                ("r" | "redirect", value) => flags.set_redirect(flag, value),
                ("f" | "forbidden", "") => flags.refusal = Some(403),
                ("g" | "gone", "") => flags.refusal = Some(410),
                ("l" | "last", "") => flags.last = true,
                ("end", "") => (flags.last, flags.ends_all) = (true, true),
                ("e" | "env", value) => flags.variables.push(value.to_owned()),
                ("qsd" | "qsdiscard", "") => flags.discards_query = true,
                ("qsa" | "qsappend", "") => flags.appends_query = true,
                ("nc" | "nocase", "") => flags.ignores_case = true,
                ("p" | "proxy", "") => flags.is_proxy = true,
                ("ns" | "nosubreq", "") => flags.skips_subrequests = true,
                // RockNet has no chained rules, so the flag is reported, too.
                ("c" | "chain", "") => {
                    flags.is_chained = true;
                    flags.set_unsupported(flag);
                }
                // After an invalid number, all rules that follow count as skipped, so that none of them is translated.
                ("s" | "skip", count) => {
                    flags.skipped = count.parse().unwrap_or(usize::MAX);
                    flags.set_unsupported(flag);
                }
                // These flags concern the escaping and the processing inside of Apache, so RockNet ignores them.
                (
                    "b" | "bnp" | "backrefnoplus" | "ne" | "noescape" | "pt" | "passthrough" | "dpi" | "discardpath",
                    "",
                ) => {}
                _ => flags.set_unsupported(flag),
            }
        }
        flags
    }

    fn set_redirect(&mut self, flag: &str, value: &str) {
        let status = match value {
            "" | "temp" => Some(302),
            "permanent" => Some(301),
            "seeother" => Some(303),
            code => code.parse::<u64>().ok(),
        };
        match status {
            Some(status @ 300..400) => self.redirect = Some(status),
            Some(status @ 400..600) => self.refusal = Some(status),
            _ => self.set_unsupported(flag),
        }
    }

    fn set_unsupported(&mut self, flag: &str) {
        self.unsupported.get_or_insert_with(|| flag.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_or_reported() {
        let flags = RewriteFlags::read("[R=301,NC,L,E=a:b]");
        assert_eq!((flags.redirect, flags.refusal, flags.last), (Some(301), None, true));
        assert!(flags.ignores_case && flags.variables == ["a:b"] && flags.unsupported.is_none());
        for (text, refusal) in [("[F]", 403), ("[forbidden,L]", 403), ("[G]", 410), ("[R=404]", 404)] {
            assert_eq!(RewriteFlags::read(text).refusal, Some(refusal), "{text}");
        }
        for flag in ["CO=a:b:.x", "S=1", "C", "N", "T=text/plain", "H=x", "R=999", "refresh"] {
            assert_eq!(
                RewriteFlags::read(&format!("[L,{flag}]")).unsupported.as_deref(),
                Some(flag)
            );
        }
        assert!(RewriteFlags::read("[P,L]").is_proxy);
    }
}

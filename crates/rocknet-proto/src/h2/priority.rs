//! How urgent an answer is, as the Priority field and PRIORITY_UPDATE say (RFC 9218 §4).

use crate::bytes::trim;

/// Urgency and whether parts of the answer are of use by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// 0, the most urgent, to 7.
    pub urgency: u8,
    /// Answers of one urgency share the connection if they are incremental, and follow each other if not.
    pub incremental: bool,
}

/// One more than the greatest urgency.
pub(crate) const URGENCY_LEVELS: usize = 8;

impl Priority {
    /// What a stream has whose client says nothing. RFC 9218 has such streams follow each other; but clients that know no
    /// priorities (most programs that are no browser) expect two downloads to go on side by side, as they did under
    /// RFC 7540, so they share.
    pub const DEFAULT: Priority = Priority {
        urgency: 3,
        incremental: true,
    };

    /// A Dictionary with `u` and `i` (RFC 9218 §4, RFC 9651 §4.2.2). Members that are not understood are passed over, and a
    /// field that is none is taken as empty: a priority is advice.
    pub fn parse(field: &[u8]) -> Priority {
        let mut priority = Priority {
            urgency: 3,
            incremental: false,
        };
        for member in field.split(|&byte| byte == b',').map(trim) {
            let member = member.split(|&byte| byte == b';').next().map_or(member, trim);
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_fields() {
        let rows = [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=1", 1, true),
            ("u=5;x=1, i=?1;y", 5, true),
            ("u=2, u=4", 4, false),
            ("i, i=?0", 3, false),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=10", 3, false),
            ("U=1, I", 3, false),
            ("x=\"u=1\"", 3, false),
            (",,,", 3, false),
            ("u", 3, false),
            ("\u{e4}", 3, false),
        ];
        for (field, urgency, incremental) in rows {
            let expected = Priority { urgency, incremental };
            assert_eq!(Priority::parse(field.as_bytes()), expected, "{field}");
        }
    }
}

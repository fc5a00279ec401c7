//! Priority of a response, from the Priority field (RFC 9218 §5) and PRIORITY_UPDATE (§7).

use crate::bytes::trim;

/// Urgency of a response, and whether it can be processed incrementally (RFC 9218 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// Urgency from 0, the most urgent, to 7 (RFC 9218 §4.1).
    pub urgency: u8,
    /// If set, the response shares the connection with other responses of its urgency. Otherwise, responses of one
    /// urgency are sent one after the other (RFC 9218 §4.2).
    pub incremental: bool,
}

/// Number of urgency levels.
pub const URGENCY_LEVELS: usize = 8;

impl Priority {
    /// Priority of a stream for which the client sends no priority. RFC 9218 would send such streams in sequence.
    /// Clients without priority support (most programs other than browsers) expect parallel downloads, as in RFC
    /// 7540. Their streams therefore share the connection.
    pub const DEFAULT: Priority = Priority {
        urgency: 3,
        incremental: true,
    };

    /// Reads the members `u` and `i` (RFC 9218 §4); the last valid one of each applies. Without `u` the urgency is 3,
    /// and without `i` the response is not incremental.
    ///
    /// This is not a full parser of RFC 9651, because a priority is only advice. The field is split at every comma,
    /// also in strings, and members that are not recognized are skipped.
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
    fn parses_priority_fields() {
        // Field value, and the expected urgency and incremental flag.
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

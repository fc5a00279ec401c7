//! Figures of a load, printed as one line of JSON.

/// Figures of a load.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    /// Complete responses with status 2xx.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    pub seconds: f64,
    pub failures: u64,
    /// Complete responses with another status.
    pub refused: u64,
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    /// Handshakes in which the server sent its certificate; only counted in a load of handshakes.
    pub full_handshakes: Option<u64>,
    /// Number of datagrams that belong to no connection; `None` if the load sent none.
    pub garbage: Option<u64>,
    /// Status and length of the last complete response.
    pub last: Option<(u16, u64)>,
    /// Reason of the last failure.
    pub reason: Option<String>,
}

impl Report {
    pub fn json(&self) -> String {
        let number = |value: Option<u64>| value.map_or("null".to_owned(), |value| value.to_string());
        let reason = match &self.reason {
            // Reasons of other programs may contain any character.
            Some(reason) => format!(
                "\"{}\"",
                reason.replace(
                    |letter: char| letter == '"' || letter == '\\' || letter.is_control(),
                    "'"
                )
            ),
            None => "null".to_owned(),
        };
        format!(
            "{{\"requests\": {}, \"bytes\": {}, \"seconds\": {:.6}, \"failures\": {}, \"refused\": {}, \"p50_us\": {}, \
             \"p99_us\": {}, \"full_handshakes\": {}, \"garbage\": {}, \"status\": {}, \"length\": {}, \"reason\": {reason}}}",
            self.requests,
            self.bytes,
            self.seconds,
            self.failures,
            self.refused,
            number(self.p50_us),
            number(self.p99_us),
            number(self.full_handshakes),
            number(self.garbage),
            number(self.last.map(|(status, _)| status.into())),
            number(self.last.map(|(_, length)| length)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_one_line() {
        let report = Report {
            requests: 10,
            bytes: 130,
            seconds: 0.5,
            p50_us: Some(20),
            last: Some((200, 13)),
            reason: Some("closed: \"x\"\n".into()),
            ..Report::default()
        };
        assert_eq!(
            report.json(),
            "{\"requests\": 10, \"bytes\": 130, \"seconds\": 0.500000, \"failures\": 0, \"refused\": 0, \"p50_us\": 20, \
             \"p99_us\": null, \"full_handshakes\": null, \"garbage\": null, \"status\": 200, \"length\": 13, \"reason\": \"closed: 'x''\"}"
        );
    }
}

//! The metrics in the older text format of Prometheus (0.0.4), for collectors that do not read OpenMetrics.

/// Media type of the older text format.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns true if a client accepts the older format and does not accept OpenMetrics. A client that names neither gets
/// OpenMetrics. `accept`: the values of its fields `Accept`. Parameters such as `q` are ignored.
pub fn is_preferred<'v>(accept: impl Iterator<Item = &'v [u8]>) -> bool {
    let (mut open_metrics, mut plain) = (false, false);
    for range in accept.flat_map(|value| value.split(|&byte| byte == b',')) {
        let media_type = range.split(|&byte| byte == b';').next().unwrap_or_default();
        let is = |known: &str| media_type.trim_ascii().eq_ignore_ascii_case(known.as_bytes());
        open_metrics |= is("application/openmetrics-text");
        plain |= is("text/plain");
    }
    plain && !open_metrics
}

/// Translates metrics in the format of OpenMetrics. The older format names a counter with its suffix `_total`, has no
/// units, no type `info`, and no mark of the end.
pub fn from_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Suffix of the sample names in the current family. OpenMetrics omits the suffix in the metadata.
    let mut suffix = "";
    for line in text.lines() {
        if line.starts_with("# UNIT ") || line == "# EOF" {
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (translated, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            suffix = translated;
            out.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            out.extend(["# HELP ", name, suffix, " ", help, "\n"]);
        } else {
            out.extend([line, "\n"]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_the_default() {
        for (accept, expected) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["text/plain"], true),
            (&["text/html, TEXT/plain;version=0.0.4;q=0.5"], true),
            (
                &["application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4"],
                false,
            ),
            (&["text/plain", "application/openmetrics-text"], false),
        ] {
            let values = accept.iter().map(|value| value.as_bytes());
            assert_eq!(is_preferred(values), expected, "{accept:?}");
        }
    }

    #[test]
    fn families_are_translated() {
        let text = "# TYPE a counter\n# UNIT a seconds\n# HELP a Help of a.\na_total{x=\"# HELP \"} 1\n\
                    # TYPE b info\n# HELP b B.\nb_info{v=\"1\"} 1\n# TYPE c gauge\n# HELP c C.\nc 2\n# EOF\n";
        let expected = "# TYPE a_total counter\n# HELP a_total Help of a.\na_total{x=\"# HELP \"} 1\n\
                        # TYPE b_info gauge\n# HELP b_info B.\nb_info{v=\"1\"} 1\n# TYPE c gauge\n# HELP c C.\nc 2\n";
        assert_eq!(from_open_metrics(text), expected);
    }
}

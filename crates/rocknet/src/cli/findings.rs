//! Findings of a configuration as the control API reports them.

use std::path::Path;

use rocknet_config::edit::KeyPositions;
use rocknet_control::config::Finding;

/// Converts findings of the configuration.
pub fn for_api(all: &[rocknet_config::Finding]) -> Vec<Finding> {
    all.iter().map(|finding| described(finding, Vec::new())).collect()
}

/// Converts findings of a configuration. `text` is the text of its file `file`. A finding in this file gets the path
/// of the key at its position.
pub fn of_file(all: &[rocknet_config::Finding], file: &Path, text: &str) -> Vec<Finding> {
    if all.is_empty() {
        return Vec::new();
    }
    let positions = KeyPositions::new(text);
    let key = |finding: &rocknet_config::Finding| match &finding.location {
        Some(at) if at.file == file => positions.at(at.line, at.column).to_vec(),
        _ => Vec::new(),
    };
    all.iter().map(|finding| described(finding, key(finding))).collect()
}

/// Converts a finding. `key` is the path of the key at its position, or empty if it is unknown. Without a position,
/// line and column are 0.
fn described(finding: &rocknet_config::Finding, key: Vec<String>) -> Finding {
    let location = finding.location.as_ref();
    Finding {
        is_error: finding.is_error(),
        code: code(finding),
        message: finding.message.clone(),
        help: finding.help.clone(),
        file: location.map(|location| location.file.clone()),
        line: location.map_or(0, |location| location.line),
        column: location.map_or(0, |location| location.column),
        key,
    }
}

/// Returns the code of a finding as JSON output spells it.
fn code(finding: &rocknet_config::Finding) -> String {
    let value = serde_json::to_value(finding.code).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns a warning about keys whose new values take effect only after a restart.
pub fn needs_restart(keys: &[&str]) -> Option<Finding> {
    let (first, rest) = keys.split_first()?;
    let keys = rest
        .iter()
        .fold(format!("`{first}`"), |text, key| format!("{text}, `{key}`"));
    let message = if rest.is_empty() {
        format!("{keys}: the new value takes effect after a restart of the server")
    } else {
        format!("{keys}: the new values take effect after a restart of the server")
    };
    Some(Finding::warning("needs-restart", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_need_a_restart_are_one_finding() {
        assert_eq!(needs_restart(&[]), None);
        for (keys, expected) in [
            (
                &["admin.listen"][..],
                "`admin.listen`: the new value takes effect after a restart of the server",
            ),
            (
                &["server.user", "server.state"],
                "`server.user`, `server.state`: the new values take effect after a restart of the server",
            ),
        ] {
            assert_eq!(needs_restart(keys).unwrap().to_string(), expected);
        }
    }
}

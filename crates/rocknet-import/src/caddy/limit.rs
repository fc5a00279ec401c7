//! Translates `rate_limit` of the plugin caddy-ratelimit to `limit`.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

/// Units of a rate, with their seconds.
const UNITS: [(&str, u64); 3] = [("s", 1), ("m", 60), ("h", 3600)];

/// Translates each zone to a limit.
pub(super) fn translate(directive: &Directive, settings: &mut Settings, notes: &mut Vec<Note>) {
    let mut limits = Vec::new();
    for inner in directive.children() {
        match inner.name.as_str() {
            "zone" => match zone(inner) {
                Some(limit) => {
                    notes.differs(
                        inner,
                        "the rate is spread evenly after `burst` requests, and has no window",
                    );
                    limits.push(limit);
                }
                None => notes.skip(
                    inner,
                    "write `limit` with `rate`, `burst` and `key`: docs/rate-limits.md",
                ),
            },
            "sweep_interval" => notes.unneeded(inner, "RockNet bounds the memory of limits without a setting"),
            "jitter" => notes.skip(inner, "`Retry-After` is exact"),
            "log_key" => notes.skip(inner, "the log names the client, and not the key"),
            // Both are for counts that several servers share.
            "distributed" | "storage" => notes.skip(inner, "each server counts requests by itself"),
            _ => notes.skip(inner, "see docs/rate-limits.md for the settings of `limit`"),
        }
    }
    if !limits.is_empty() {
        settings.set("limit", Value::one_or_list(limits), directive.line);
    }
}

/// Returns the limit of a zone; `None` if it has a matcher, or another part without a counterpart.
fn zone(block: &Directive) -> Option<Value> {
    let (mut key, mut events, mut window) = (None, None, None);
    for inner in block.children() {
        match (inner.name.as_str(), &inner.words()[..]) {
            ("key", [text]) => key = Some((*text).to_owned()),
            ("events", [count]) => events = count.parse::<u32>().ok().map(u64::from),
            ("window", [time]) => window = units::seconds(time).filter(|seconds| *seconds > 0),
            _ => return None,
        }
    }
    let (events, window) = (events?, window?);
    // The unit is the window itself, or else the shortest unit in which the rate is a whole number. So 5 events in two
    // minutes become `150/h`.
    let is_whole = |(_, seconds): &&(&str, u64)| {
        let product = events.checked_mul(*seconds);
        product.is_some_and(|product| product.is_multiple_of(window) && product >= window)
    };
    let unit = UNITS.iter().find(|(_, seconds)| *seconds == window);
    let (unit, seconds) = unit.or_else(|| UNITS.iter().find(is_whole))?;
    let mut limit = vec![
        (
            "rate".to_owned(),
            Value::Text(format!("{}/{unit}", events.checked_mul(*seconds)? / window)),
        ),
        ("burst".to_owned(), Value::Number(events)),
    ];
    match key.as_deref() {
        Some("{remote_host}" | "{client_ip}" | "{http.request.remote.host}" | "{http.vars.client_ip}") => {}
        Some(text) => {
            let key = placeholder::from_caddy(text, Scope::Request)?;
            limit.push(("key".to_owned(), Value::Text(key)));
        }
        // With a constant key, all requests count together, as in Caddy without `key`.
        None => limit.push(("key".to_owned(), Value::text("all"))),
    }
    Some(Value::Table(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::NoteKind;

    #[test]
    fn options_of_the_plugin_get_notes() {
        for (option, expected) in [
            ("sweep_interval 1m", NoteKind::NotNeeded),
            ("jitter 0.2", NoteKind::NotTranslated),
            ("log_key", NoteKind::NotTranslated),
            ("distributed {\nread_interval 5s\n}", NoteKind::NotTranslated),
            ("storage file_system", NoteKind::NotTranslated),
            ("unknown", NoteKind::NotTranslated),
        ] {
            let tree = super::super::read(&format!("rate_limit {{\n{option}\n}}\n")).unwrap();
            let (mut settings, mut notes) = (Settings::default(), Vec::new());
            translate(&tree[0], &mut settings, &mut notes);
            let [note] = &notes[..] else {
                panic!("{option}: {notes:?}")
            };
            assert_eq!(note.kind, expected, "{option}");
        }
    }

    #[test]
    fn zones_become_limits() {
        for (zone, expected) in [
            (
                "key {remote_host}\nevents 100\nwindow 1m",
                "{ rate = \"100/m\", burst = 100 }",
            ),
            (
                "key {remote_host}\nevents 100\nwindow 10s",
                "{ rate = \"10/s\", burst = 100 }",
            ),
            (
                "key static\nevents 5\nwindow 2m",
                "{ rate = \"150/h\", burst = 5, key = \"static\" }",
            ),
            (
                "key {http.request.header.X-Key}\nevents 1\nwindow 1s",
                "{ rate = \"1/s\", burst = 1, key = \"{request.header.X-Key}\" }",
            ),
            ("key {unknown}\nevents 1\nwindow 1s", ""),
            ("match {\nmethod POST\n}\nkey a\nevents 1\nwindow 1s", ""),
            ("key a\nevents 1", ""),
            ("key a\nevents 18446744073709551615\nwindow 5s", ""),
            ("key a\nevents 4294967295\nwindow 18446744073709551615", ""),
            (
                "key a\nevents 4294967295\nwindow 1h",
                "{ rate = \"4294967295/h\", burst = 4294967295, key = \"a\" }",
            ),
            ("key a\nevents 10\nwindow 18446744073709551615", ""),
        ] {
            let text = format!("rate_limit {{\nzone a {{\n{zone}\n}}\n}}\n");
            let tree = super::super::read(&text).unwrap();
            let (mut settings, mut notes) = (Settings::default(), Vec::new());
            translate(&tree[0], &mut settings, &mut notes);
            let mut out = String::new();
            if let Some(limit) = settings.get("limit") {
                limit.write(&mut out);
            }
            assert_eq!(out, expected, "{zone}");
            assert!(!notes.is_empty(), "{zone}");
        }
    }
}

//! Translates directives whose settings RockNet has for all sites together only, in global tables.

use super::{ConfigLevel, Scope};
use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::units;
use crate::value::Value;

/// Returns the size of all buffers of `large_client_header_buffers` together, within the range of `header_size`, which
/// is 1 KiB to 1 MiB. Returns `None` for an invalid number or size.
fn header_size(number: &str, size: &str) -> Option<Value> {
    let number: u64 = number.parse().ok()?;
    let (digits, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
    let unit = match unit {
        "" => 1,
        "k" | "K" => 1024,
        "m" | "M" => 1024 * 1024,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?.checked_mul(number)?;
    Some(Value::Text(format!("{}KiB", (bytes / 1024).clamp(1, 1024))))
}

impl Scope<'_> {
    /// Reads a directive. Returns false if it has no setting in a global table.
    pub(super) fn read_global(&mut self, directive: &Directive, words: &[&str]) -> bool {
        let time = words.first().and_then(|time| units::duration_of(time)).map(Value::Text);
        let (table, key, value) = match (directive.name.as_str(), words, time) {
            ("client_header_timeout", [_], Some(time)) => ("limits", "header_timeout", time),
            ("client_body_timeout", [_], Some(time)) => ("limits", "body_idle", time),
            ("send_timeout", [_], Some(time)) => ("limits", "send_stall", time),
            ("large_client_header_buffers", [number, size], _) => match header_size(number, size) {
                Some(size) => ("limits", "header_size", size),
                None => return false,
            },
            ("set_real_ip_from", [address], _) => {
                let address = if *address == "unix:" { "unix" } else { *address };
                ("server", "trusted_proxies", Value::List(vec![Value::text(address)]))
            }
            ("real_ip_header", [field], _) if field.eq_ignore_ascii_case("X-Forwarded-For") => {
                self.notes
                    .unneeded(directive, "`trusted_proxies` name the client in this field by default");
                return true;
            }
            ("real_ip_header", [field], _) if field.eq_ignore_ascii_case("Forwarded") => {
                ("server", "trusted_field", Value::text("forwarded"))
            }
            ("real_ip_recursive", [_], _) => {
                self.notes.unneeded(
                    directive,
                    "the list is read up to the first address that is not trusted",
                );
                return true;
            }
            ("client_body_temp_path", [folder, ..], _) if !folder.contains('$') => {
                let spool = vec![("folder".to_owned(), Value::text(*folder))];
                ("server", "spool", Value::Table(spool))
            }
            _ => return false,
        };
        if self.level != ConfigLevel::Http {
            self.notes.differs(directive, "the setting applies to the whole server");
        }
        self.globals.push((table, key, value, directive.line));
        true
    }

    /// Moves the settings of [`Scope::read_global`] to the global tables. Lists are joined. Of other values of a key,
    /// the first one stays.
    pub fn move_globals(&mut self, document: &mut Document) {
        for (table, key, value, line) in std::mem::take(&mut self.globals) {
            let table = document.table(table);
            match (table.get(key).cloned(), value) {
                (Some(Value::List(mut known)), Value::List(new)) => {
                    let new = new
                        .into_iter()
                        .filter(|value| !known.contains(value))
                        .collect::<Vec<_>>();
                    known.extend(new);
                    table.set(key, Value::List(known), line);
                }
                (Some(_), _) => {}
                (None, value) => table.set(key, value, line),
            }
        }
    }
}

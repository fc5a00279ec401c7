//! Translates `log_format`: replaces the name of a format in `access_log` by the line in RockNet's form.

use std::collections::HashMap;

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::placeholder;

/// Beginning of the argument that replaces the name of a format. No name contains it, because it has a space.
const LINE: &str = "line ";

/// Lines of the formats by name; `None` for a line that has no counterpart.
type Formats = HashMap<String, Option<String>>;

/// Returns the tree with the lines of formats in place of their names. The name of a format stays if the format is not
/// defined or has no counterpart.
pub(super) fn resolve(tree: &[Directive]) -> Vec<Directive> {
    let http = tree.iter().filter(|directive| directive.is("http"));
    let all = tree.iter().chain(http.flat_map(Directive::children));
    let formats: Formats = all
        .filter(|directive| directive.is("log_format"))
        .filter_map(format)
        .collect();
    let mut resolved = tree.to_vec();
    if !formats.is_empty() {
        replace(&mut resolved, &formats);
    }
    resolved
}

/// Returns the line in an argument of `access_log`, if the argument is one.
pub(super) fn line(argument: &str) -> Option<&str> {
    argument.strip_prefix(LINE)
}

/// Returns name and line of a `log_format`. Its parts follow each other without a space.
fn format(directive: &Directive) -> Option<(String, Option<String>)> {
    let (name, parts) = directive.arguments.split_first()?;
    let escape = |part: &&String| part.starts_with("escape=");
    let is_json = parts.first().is_some_and(|part| part == "escape=json");
    let text: String = parts.iter().skip_while(escape).map(String::as_str).collect();
    // The request line has no placeholder of its own. The quote after it distinguishes `$request` from `$request_uri`.
    // `{time.clf}` has brackets already.
    let text = text
        .replace("$request\"", "$request_method $request_uri $server_protocol\"")
        .replace("[$time_local]", "$time_local");
    let line = placeholder::from_nginx(&text, Scope::Log);
    // RockNet escapes as JSON if the line is an object.
    Some((name.clone(), line.filter(|line| !is_json || line.starts_with('{'))))
}

fn replace(directives: &mut [Directive], formats: &Formats) {
    for directive in directives {
        if directive.is("access_log")
            && let Some(name) = directive.arguments.get_mut(1)
            && let Some(Some(line)) = formats.get(name)
        {
            *name = format!("{LINE}{line}");
        }
        replace(directive.block.as_deref_mut().unwrap_or_default(), formats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(name: &str, words: &[&str]) -> Directive {
        Directive::new(name, words.iter().map(|word| (*word).to_owned()).collect(), 1)
    }

    #[test]
    fn logs_get_the_lines_of_their_formats() {
        let mut server = directive("server", &[]);
        server.block = Some(vec![
            directive("access_log", &["a.log", "main"]),
            directive("access_log", &["b.log", "unknown"]),
            directive("access_log", &["c.log", "packed", "buffer=32k"]),
            directive("access_log", &["d.log", "json"]),
        ]);
        let tree = [
            directive(
                "log_format",
                &["main", "$remote_addr [$time_local] ", "\"$request\" $status"],
            ),
            directive("log_format", &["packed", "$gzip_ratio"]),
            directive("log_format", &["json", "escape=json", "{\"ip\":\"$remote_addr\"}"]),
            server,
        ];
        let resolved = resolve(&tree);
        let logs: Vec<_> = resolved[3].children().iter().map(|log| line(log.argument(1))).collect();
        let main = "{client.ip} {time.clf} \"{method} {target} {protocol}\" {status}";
        assert_eq!(logs, [Some(main), None, None, Some("{\"ip\":\"{client.ip}\"}")]);
        assert_eq!(resolved[3].children()[2].argument(1), "packed");
    }
}

//! Expansion of `${NAME}` and `${file:PATH}` in string values, before the values are checked.

use std::path::Path;

use crate::environment::Environment;
use crate::file::Text;

/// Maximum size of an expanded string, in bytes: enough for a key or certificate, but not for a log file named by
/// mistake.
pub const MAX_VALUE_BYTES: usize = 256 * 1024;

/// Reason why a string cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpansionError {
    pub message: String,
    pub help: String,
}

/// Replaces every `${…}` of a string. `$${` stands for a literal `${`, and any other `$` for itself. `folder`: folder
/// that paths of files are relative to.
///
/// Expanded values are not expanded again, so a variable cannot refer to another variable.
pub(crate) fn expand(text: &mut Text, folder: &Path, env: &dyn Environment) -> Result<(), ExpansionError> {
    if !text.value.contains("${") {
        return Ok(());
    }
    let mut expanded = String::with_capacity(text.value.len());
    let mut rest = text.value.as_str();
    let mut replaced = false;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = &after[2..];
            continue;
        }
        expanded.push_str(before);
        let Some(end) = after.find('}') else {
            return Err(ExpansionError {
                message: "`${` is not closed".to_owned(),
                help: "write ${NAME}, or $${ for a literal ${".to_owned(),
            });
        };
        expanded.push_str(&lookup(&after[2..end], folder, env)?);
        replaced = true;
        rest = &after[end + 1..];
        if expanded.len() > MAX_VALUE_BYTES {
            return Err(ExpansionError {
                message: format!("the expanded value is larger than {} KiB", MAX_VALUE_BYTES / 1024),
                help: "check the file name: keys and passwords are far smaller".to_owned(),
            });
        }
    }
    expanded.push_str(rest);
    let template = std::mem::replace(&mut text.value, expanded);
    if replaced {
        text.template = Some(template);
    }
    Ok(())
}

/// Returns the value that replaces `${…}`. `name`: the text between the braces.
fn lookup(name: &str, folder: &Path, env: &dyn Environment) -> Result<String, ExpansionError> {
    if let Some(path) = name.strip_prefix("file:") {
        let path = folder.join(path);
        let text = env.read(&path).map_err(|e| ExpansionError {
            message: format!("cannot read {}: {e}", path.display()),
            help: "create the file, and give the server's user permission to read it".to_owned(),
        })?;
        // Editors and `echo` end a file with a newline that is not part of the secret.
        let text = text.strip_suffix('\n').unwrap_or(&text);
        return Ok(text.strip_suffix('\r').unwrap_or(text).to_owned());
    }
    let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !named {
        return Err(ExpansionError {
            message: format!("`${{{name}}}` is not a valid variable name"),
            help: "write ${NAME} with letters, digits and `_`, ${file:PATH}, or $${ for a literal ${".to_owned(),
        });
    }
    env.variable(name).ok_or_else(|| ExpansionError {
        message: format!("the environment variable `{name}` is not set"),
        help: format!("set it before starting RockNet: {name}=… rocknet"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::MemoryEnvironment;

    #[test]
    fn variables_and_files_are_expanded_once() {
        let mut env = MemoryEnvironment::default();
        env.variables.insert("HOME".into(), "/home/ada".into());
        env.variables.insert("TRAP".into(), "${HOME}".into());
        env.files.insert("/run/key".into(), "s3cret\r\n".into());
        env.files.insert("/etc/rn/near".into(), "n".into());
        env.files.insert("/big".into(), "x".repeat(MAX_VALUE_BYTES + 1));
        // (string, expanded string or a part of the error)
        let rows: &[(&str, Result<&str, &str>)] = &[
            ("plain", Ok("plain")),
            ("$5 and $x", Ok("$5 and $x")),
            ("${HOME}/www", Ok("/home/ada/www")),
            ("${HOME}${HOME}", Ok("/home/ada/home/ada")),
            ("${TRAP}", Ok("${HOME}")),
            ("$${HOME}", Ok("${HOME}")),
            ("a$${b", Ok("a${b")),
            ("$$", Ok("$$")),
            ("${file:/run/key}", Ok("s3cret")),
            ("${file:near}", Ok("n")),
            ("${NONE}", Err("variable `NONE` is not set")),
            ("${", Err("not closed")),
            ("${}", Err("not a valid variable name")),
            ("${a-b}", Err("not a valid variable name")),
            ("${file:/gone}", Err("cannot read /gone")),
            ("${file:/big}", Err("larger than 256 KiB")),
        ];
        for (written, want) in rows {
            let mut text = Text {
                value: (*written).to_owned(),
                template: None,
            };
            match (expand(&mut text, Path::new("/etc/rn"), &env), want) {
                (Ok(()), Ok(value)) => assert_eq!(text.value, *value, "{written}"),
                (Err(e), Err(part)) => assert!(e.message.contains(part), "{written}: {}", e.message),
                (got, want) => panic!("{written}: {got:?}, not {want:?}"),
            }
        }
    }
}

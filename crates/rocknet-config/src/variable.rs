//! `${NAME}` and `${file:PATH}` in any string value: filled in before anything else looks at the value.

use std::path::Path;

use crate::environment::Environment;
use crate::file::Text;

/// Largest value one string may grow to: a key or certificate fits, a mistaken log file does not.
pub const MAX_VALUE_BYTES: usize = 256 * 1024;

/// Why a string cannot be filled in: what is wrong, what to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpansionError {
    pub message: String,
    pub help: String,
}

/// Replaces every `${…}` of a string; `$${` stands for a plain `${`, and a `$` before anything else for itself.
///
/// What is filled in is not looked at again, so no variable can bring in another.
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
                help: "write ${NAME}, or $${ for a plain ${".to_owned(),
            });
        };
        expanded.push_str(&lookup(&after[2..end], folder, env)?);
        replaced = true;
        rest = &after[end + 1..];
        if expanded.len() > MAX_VALUE_BYTES {
            return Err(ExpansionError {
                message: format!("the value grows past {} KiB", MAX_VALUE_BYTES / 1024),
                help: "name the right file; a key or password is far smaller".to_owned(),
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

fn lookup(name: &str, folder: &Path, env: &dyn Environment) -> Result<String, ExpansionError> {
    if let Some(path) = name.strip_prefix("file:") {
        let path = folder.join(path);
        let text = env.read(&path).map_err(|e| ExpansionError {
            message: format!("cannot read {}: {e}", path.display()),
            help: "make the file, and let the server's user read it".to_owned(),
        })?;
        // Editors and `echo` end a file with a newline that is no part of the secret.
        let text = text.strip_suffix('\n').unwrap_or(&text);
        return Ok(text.strip_suffix('\r').unwrap_or(text).to_owned());
    }
    let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !named {
        return Err(ExpansionError {
            message: format!("`${{{name}}}` names no variable"),
            help: "write ${NAME} with letters, digits and `_`, ${file:PATH}, or $${ for a plain ${".to_owned(),
        });
    }
    env.variable(name).ok_or_else(|| ExpansionError {
        message: format!("the environment has no variable `{name}`"),
        help: format!("set it before starting RockNet: {name}=… rocknet"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Memory;

    #[test]
    fn variables_and_files_are_filled_in_once() {
        let mut env = Memory::default();
        env.variables.insert("HOME".into(), "/home/ada".into());
        env.variables.insert("TRAP".into(), "${HOME}".into());
        env.files.insert("/run/key".into(), "s3cret\r\n".into());
        env.files.insert("/etc/rn/near".into(), "n".into());
        env.files.insert("/big".into(), "x".repeat(MAX_VALUE_BYTES + 1));
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
            ("${NONE}", Err("no variable `NONE`")),
            ("${", Err("not closed")),
            ("${}", Err("names no variable")),
            ("${a-b}", Err("names no variable")),
            ("${file:/gone}", Err("cannot read /gone")),
            ("${file:/big}", Err("grows past")),
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

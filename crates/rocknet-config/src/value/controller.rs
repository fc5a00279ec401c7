//! Parses `controller`: a shared library and the name of a function in it.

use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Controller;
use crate::value::path;

/// Maximum length of the name of a controller, in bytes. It is longer than any name in use.
const MAX_NAME: usize = 128;

/// Reads `controller`; `None` if it is off or invalid.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Controller> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`controller = true` names no controller";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        // Off, or of a wrong type, which the check of the keys has reported.
        _ => return None,
    };
    if let Some(reason) = check.env.controllers_error() {
        let help = "install the build of RockNet for glibc instead of the static one, or remove `controller`";
        check.error(Code::NotAvailable, node.span, format!("`controller`: {reason}"), help);
        return None;
    }
    let Some((library, name)) = written.value.rsplit_once(':') else {
        let message = format!(
            "`controller` has no name after the library \"{}\"",
            short(&written.value)
        );
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    };
    let is_name = |text: &str| !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_name(name) || name.contains('/') {
        let message = format!("`controller`: \"{}\" is not a valid name", short(name));
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    }
    let library = path::file_at(check, "controller", node, library)?;
    let name = name.to_owned();
    Some(Controller { library, name })
}

/// Help for a `controller` that names no valid function.
const EXAMPLE: &str = "write the library, a colon and the name: \"controllers/hello.so:hello\"";

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use crate::environment::{Environment, FileKind, MemoryEnvironment};
    use crate::finding::Code;

    /// Environment of a statically linked program, which cannot load shared libraries.
    struct StaticProgram(MemoryEnvironment);

    impl Environment for StaticProgram {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.variable(name)
        }

        fn read(&self, path: &Path) -> io::Result<String> {
            self.0.read(path)
        }

        fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
            self.0.matching(pattern)
        }

        fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
            self.0.folders(parent)
        }

        fn kind(&self, path: &Path) -> Option<FileKind> {
            self.0.kind(path)
        }

        fn current_dir(&self) -> PathBuf {
            self.0.current_dir()
        }

        fn controllers_error(&self) -> Option<&'static str> {
            Some("no loader")
        }
    }

    #[test]
    fn a_program_that_cannot_load_libraries_reports_each_controller() {
        let file = PathBuf::from("/etc/rocknet/rocknet.toml");
        let mut memory = MemoryEnvironment::default();
        let text = "[site.\":80\"]\nroot = \"/etc\"\n[site.\":80\".route.\"/a\"]\ncontroller = \"a.so:a\"\n\
                    [site.\":80\".route.\"/b\"]\ncontroller = false\n";
        memory.files.insert(file.clone(), text.to_owned());
        memory.files.insert(PathBuf::from("/etc/rocknet/a.so"), String::new());
        // A program that can load libraries accepts the configuration.
        crate::check(&file, &memory).unwrap();
        // Route `/b` turns controllers off, so only the controller of route `/a` on line 4 is reported.
        let report = crate::check(&file, &StaticProgram(memory)).unwrap_err();
        let found: Vec<_> = report.findings.iter().filter(|finding| finding.is_error()).collect();
        assert_eq!(found.len(), 1, "{report:?}");
        assert_eq!(
            (found[0].code, &*found[0].message),
            (Code::NotAvailable, "`controller`: no loader")
        );
        assert_eq!(found[0].location.as_ref().map(|location| location.line), Some(4));
    }
}

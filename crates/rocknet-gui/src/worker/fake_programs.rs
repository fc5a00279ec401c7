//! Programs of the system that a test plays by scripts.

use std::path::Path;
use std::process::Command;

/// Writes a script of the shell to a folder. Its writer has ended, because a file that any process could still write is
/// not executed.
pub fn script(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    let write = format!(
        "printf '#!/bin/sh\\n%s\\n' \"$1\" > {0} && chmod 755 {0}",
        file.display()
    );
    let status = Command::new("/bin/sh").args(["-c", &write, "sh", text]).status();
    assert!(status.unwrap().success(), "{name}");
}

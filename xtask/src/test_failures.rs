//! Output of failed tests, extracted from the output of `cargo test`.

use std::fmt;

/// Maximum number of lines that are kept, and of the lines of one test.
const MAX_LINES: usize = 120;
const MAX_LINES_OF_TEST: usize = 30;

/// Output of the tests that have failed, shortened.
#[derive(Default)]
pub struct TestFailures {
    lines: Vec<String>,
    /// Number of lines of the current test; `None` outside the output of a failed test.
    of_test: Option<usize>,
}

impl TestFailures {
    /// Takes a line of the output of `cargo test`.
    pub fn take(&mut self, line: &str) {
        // libtest prints the output of each failed test after a line `---- NAME stdout ----`, and then the list of the
        // names.
        let begins = line.starts_with("---- ") && line.ends_with(" stdout ----");
        if begins {
            self.of_test = Some(0);
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.of_test = None;
        }
        let Some(of_test) = &mut self.of_test else { return };
        let is_kept = begins || !line.trim().is_empty() && *of_test < MAX_LINES_OF_TEST;
        if is_kept && self.lines.len() < MAX_LINES {
            *of_test += 1;
            self.lines.push(line.to_owned());
        }
    }
}

impl fmt::Display for TestFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_failed_tests_is_kept() {
        let mut failures = TestFailures::default();
        let backtrace = "frame\n".repeat(MAX_LINES_OF_TEST);
        let output = format!(
            "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\npanicked at b\n\n\
             {backtrace}---- c stdout ----\npanicked at c\n\nfailures:\n    b\n    c\n\ntest result: FAILED\n"
        );
        output.lines().for_each(|line| failures.take(line));
        let shown = failures.to_string();
        let expected = format!(
            "---- b stdout ----\npanicked at b\n{}---- c stdout ----\npanicked at c",
            "frame\n".repeat(MAX_LINES_OF_TEST - 2)
        );
        assert_eq!(shown, expected);
    }
}

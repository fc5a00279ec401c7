//! Checks the first lines of files: every file must open with one `//!` sentence that describes it.

/// Returns the violation in the first line of the file `shown`.
pub fn check(shown: &str, text: &str) -> Vec<String> {
    if text.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!(
        "{shown}: a file opens with one `//!` sentence that describes it"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_open_with_a_doc_sentence() {
        for (text, expected) in [("//! A noun.\nfn f() {}\n", 0), ("fn f() {}\n", 1), ("", 1)] {
            assert_eq!(check("a.rs", text).len(), expected, "{text:?}");
        }
    }
}

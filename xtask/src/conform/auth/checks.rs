//! List of the checks that have passed.

/// Checks that have passed, each once, in the order in which they ran.
#[derive(Default)]
pub struct Checks(Vec<&'static str>);

impl Checks {
    /// Adds a check that has passed.
    pub fn pass(&mut self, check: &'static str) {
        println!("passed: {check}");
        if !self.0.contains(&check) {
            self.0.push(check);
        }
    }

    /// Returns the checks.
    pub fn passed(&self) -> &[&'static str] {
        &self.0
    }
}

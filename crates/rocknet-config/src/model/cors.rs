//! Requests of pages from other origins (CORS, Fetch standard §3.2).

/// Permission for pages of other origins to read responses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cors {
    /// Origins that are permitted, such as `https://app.example.com`; empty: all origins.
    pub origins: Vec<String>,
}

impl Cors {
    /// Returns true if pages of this origin may read responses.
    pub fn permits(&self, origin: &str) -> bool {
        self.origins.is_empty() || self.origins.iter().any(|permitted| permitted == origin)
    }
}

//! A list that is queried when its page is shown, with the states of the query.

/// A list that is queried when its page is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Fetched<T> {
    #[default]
    Missing,
    Loading,
    Loaded(T),
    Failed(String),
    /// The token of this program does not permit the query.
    Denied,
}

impl<T> Fetched<T> {
    /// Takes the result of the query.
    pub fn take(&mut self, result: Result<T, String>) {
        *self = match result {
            Ok(list) => Fetched::Loaded(list),
            Err(error) => Fetched::Failed(error),
        };
    }
}

//! A list that is queried when its page is shown, with the states of the query.

use rocknet_control::api::ApiError;

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
    /// Returns the state after an error of the server: a token without the right to read has a state of its own.
    pub fn refused(error: ApiError) -> Fetched<T> {
        match error.status {
            403 => Fetched::Denied,
            _ => Fetched::Failed(error.error),
        }
    }

    /// Takes the result of the query.
    pub fn take(&mut self, result: Result<T, String>) {
        *self = match result {
            Ok(list) => Fetched::Loaded(list),
            Err(error) => Fetched::Failed(error),
        };
    }
}

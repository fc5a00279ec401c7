//! Key of a limit, such as `key = "{request.header.X-Api-Key}"`: requests with the same key count together.

use rocknet_config::model::Limit;
use rocknet_config::template::{Piece, Placeholder, Scope, Template, Values};
use rocknet_limit::KeySeed;

use crate::exchange::Client;

/// Key of a limit.
pub struct LimitKey(
    /// `None`: the client.
    Option<Template>,
);

impl LimitKey {
    /// Prepares the key of a limit.
    ///
    /// # Errors
    ///
    /// Fails if the key has an unknown placeholder.
    pub fn new(limit: &Limit) -> Result<LimitKey, String> {
        let key = limit.key.as_ref().map(|key| Template::parse(key, Scope::Request));
        let key = key.transpose();
        key.map(LimitKey)
            .map_err(|error| format!("limit: {}; {}", error.message, error.help))
    }

    /// Returns true if the key is the same for all requests.
    pub fn is_constant(&self) -> bool {
        self.0.as_ref().is_some_and(|key| key.as_constant().is_some())
    }

    /// Returns the hash of the key of a request. If the key has placeholders and all of them are empty, the client is
    /// the key. Processes with the same seed compute the same hash, as [`rocknet_limit::key_seed`] describes.
    pub fn hash(&self, seed: &KeySeed, client: Client, values: &dyn Values) -> u64 {
        let of_client = || seed.of_client(network(client));
        let Some(template) = &self.0 else {
            return of_client();
        };
        let mut hasher = seed.hasher();
        let mut is_empty = true;
        for piece in template.pieces() {
            match piece {
                // The text is the same for all requests of the limit.
                Piece::Text(_) => continue,
                Piece::Value(Placeholder::ClientIp) => {
                    is_empty = false;
                    hasher.add_client(network(client));
                }
                Piece::Value(placeholder) => {
                    let value = values.value(placeholder);
                    is_empty &= value.is_empty();
                    hasher.add_value(&value);
                }
            }
        }
        // A key without placeholders, such as `all`, has no values. All requests count together by the hash of nothing.
        match is_empty && template.as_constant().is_none() {
            true => of_client(),
            false => hasher.finish(),
        }
    }
}

/// Returns the network that counts as one client. All clients of Unix sockets count as one client.
fn network(client: Client) -> u128 {
    client.count_key().unwrap_or(u128::MAX)
}

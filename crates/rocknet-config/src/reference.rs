//! Documents that are generated from the table of keys: the reference page and the JSON Schema for editors.

mod markdown;
mod schema;

pub use markdown::markdown;
pub use schema::schema;

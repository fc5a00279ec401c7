//! Parts of the tests of the server.

#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../server/support/upstream.rs"]
pub mod upstream;

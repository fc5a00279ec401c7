//! Resumption of TLS sessions: the keys of session tickets, and the sessions that are stored for early data. Both can
//! be passed to a process that takes over.
//!
//! Most sessions are stored by the client, in a ticket that only this server can decrypt. If a site accepts early data,
//! the server itself stores the QUIC sessions of the site, because each of them must be resumed only once.

mod session_store;
mod session_stores;
mod ticket_cipher;
mod ticket_secrets;

pub use session_store::{SessionStore, StoredSession};
pub use session_stores::{SessionStores, SiteSessions};
pub use ticket_cipher::TicketCipher;
pub use ticket_secrets::TicketSecrets;

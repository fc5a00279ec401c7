//! TOML as it is typed: its colours, and proposals for keys and values from the table of keys.

mod acceptance;
mod completion;
mod lexer;
mod styles;

pub use acceptance::end_of_word;
pub use completion::{Completion, Proposal, complete};
pub use lexer::{Token, TokenKind, tokens};
pub use styles::{KINDS, MARKS, place, styles};

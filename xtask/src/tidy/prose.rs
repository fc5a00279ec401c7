//! Checks for plain English in comments and messages: openings of comments, idioms, the length of sentences, and the
//! width of lines.

mod blocks;
mod finding;
mod idioms;
mod length;
mod messages;
mod openings;
mod sentences;
mod width;
mod words;

use super::token::Token;
use blocks::blocks;
pub use finding::{Finding, Rule};
use sentences::of_lines;
pub use words::Words;

/// Returns the violations in all comments of a file, tests included.
pub fn comments(words: &Words, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for block in blocks(text) {
        let sentences = of_lines(&block.lines);
        found.extend(openings::check(words, &block, &sentences));
        found.extend(openings::check_later(words, &block, &sentences));
        for sentence in &sentences {
            found.extend(idioms::check(words, Rule::Idiom, sentence));
            found.extend(length::check(sentence));
        }
    }
    found.extend(width::check(text));
    found
}

/// Returns the violations in the messages of `code`, from which test code must have been removed.
pub fn messages(words: &Words, code: &[Token<'_>]) -> Vec<Finding> {
    messages::check(words, code)
}

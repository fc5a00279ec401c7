//! HTTP/2 held in conversation: tables of frames and what they must lead to, in every split and with more frames
//! behind.

mod answers;
mod check;
mod content;
mod floods;
mod heads;
mod idle;
mod laws;
mod rules;

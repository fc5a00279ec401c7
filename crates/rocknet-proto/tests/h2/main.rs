//! HTTP/2 held in conversation: tables of frames and what they must lead to, in every split and with more frames
//! behind.

mod bodies;
mod check;
mod floods;
mod frames;
mod heads;
mod idle;
mod properties;
mod responses;

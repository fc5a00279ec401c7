//! HTTP/2 as transcripts: tables of frames and their events, in every split and with more frames after them.

mod bodies;
mod check;
mod floods;
mod frames;
mod heads;
mod idle;
mod properties;
mod responses;

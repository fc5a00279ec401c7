//! View-model of the RockNet window, without a toolkit: the state, the pages, the texts, the colours, and the worker
//! thread that owns the connection to the server.
//!
//! The program `rocknet-gui` draws it with FLTK. An act of the user or a report of the worker changes the
//! [`Model`](model::Model), [`screen`](pages::screen) describes the window, and the program draws the difference.

#![forbid(unsafe_code)]

pub mod act;
pub mod difference;
pub mod elsewhere;
pub mod home;
pub mod job;
pub mod mailbox;
pub mod model;
pub mod navigation_layout;
pub mod pages;
pub mod reading_place;
pub mod screen;
pub mod theme;
pub mod toml_text;
pub mod ways;
pub mod words;
pub mod worker;

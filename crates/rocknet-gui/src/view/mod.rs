//! The window, drawn with FLTK: a thin layer that shows a [`Screen`](rocknet_gui::screen::Screen) and collects the acts
//! of the user. One file per part.

mod button;
mod cell;
mod charts;
pub mod choice;
mod chooser;
mod drag;
mod drops;
mod editor;
mod form;
mod form_row;
mod header;
pub mod icon;
mod inputs;
mod keys;
mod lines;
mod message;
mod navigation;
mod notice;
mod paint;
mod proposals;
mod scrollbar;
pub mod shared;
mod state_widget;
pub mod symbols;
mod table;
pub mod window;
